// Shows the stream of /api/v1/live. All text from the network is set as textContent.
"use strict";

const $ = id => document.getElementById(id);
const EVENTS_SHOWN = 200;

function rate(bps) {
  for (const [unit, n] of [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3]]) if (bps >= n) return `${(bps / n).toPrecision(3)} ${unit}`;
  return `${Math.round(bps)} bit/s`;
}
function bytes(n) {
  for (const [unit, k] of [["MB", 1e6], ["kB", 1e3]]) if (n >= k) return `${(n / k).toPrecision(3)} ${unit}`;
  return `${n} B`;
}
function span(s) {
  return s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}
const part = u => (u === null || u === undefined ? "–" : `${(100 * u).toFixed(0)} %`);
const short = id => "s" + (id.replace(/^0+/, "") || "0");

function node(name, text, className) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

// columns: [heading, cell(row) -> text or element, class].
function table(id, columns, rows, none) {
  const t = $(id);
  if (!rows.length) { t.replaceChildren(); const tr = t.insertRow(); tr.append(node("td", none, "none")); return; }
  const head = node("thead"), line = node("tr"), body = node("tbody");
  for (const [heading, , className] of columns) line.append(node("th", heading, className));
  head.append(line);
  for (const row of rows) {
    const tr = node("tr");
    for (const [, cell, className] of columns) {
      const value = cell(row), td = node("td", undefined, className);
      td.append(value);
      tr.append(td);
    }
    body.append(tr);
  }
  t.replaceChildren(head, body);
}

function loadBar(load) {
  const e = node("span");
  if (!load) { e.textContent = "–"; return e; }
  if (load.utilisation !== null) {
    const bar = node("span", undefined, "bar"), fill = node("i", undefined, `l${level(load)}`);
    fill.style.width = `${Math.min(100, 100 * load.utilisation)}%`;
    bar.append(fill);
    e.append(bar);
  }
  e.append(rate(load.tx_bps));
  return e;
}
function pill(kind) {
  const words = { queue: "standing queue", burst: "burst" };
  return node("span", kind ? words[kind] : "clear", kind ? "pill no" : "pill");
}

function facts(s) {
  const congested = s.congestion.filter(c => c.kind).length;
  const all = [
    ["Switches", s.topology.switches.length], ["Links", s.topology.links.length], ["Hosts", s.topology.hosts.length],
    ["Agents", s.agents.length], ["Flows", s.flows.length],
    ["Congested ports", congested, congested ? "no" : ""], ["Running", span(s.uptime_s)], ["Agents' secret", s.authenticated ? "yes" : "none, this host only"],
  ];
  $("facts").replaceChildren(...all.map(([name, value, className]) => {
    const d = node("div");
    d.append(node("dt", name), node("dd", value, className));
    return d;
  }));
}

function show(s) {
  $("name").textContent = s.name;
  facts(s);
  $("no-switches").hidden = s.topology.switches.length > 0;
  $("drawing").style.display = $("legend").style.display = s.topology.switches.length ? "" : "none";
  drawTopology($("drawing"), s.topology);
  table("congestion", [
    ["Port", c => `${c.interface} of ${c.agent}`],
    ["Controller", c => c.controller],
    ["State", c => (c.controller === "brf" ? pill(c.kind) : "–")],
    ["For", c => span(c.seconds), "num"],
    ["Queue", c => bytes(c.queued_bytes), "num"],
    ["Arrivals", c => part(c.arrivals), "num"],
    ["Link (eq. 5)", c => part(c.netcard_rate), "num"],
    ["Link (PACEC)", c => part(c.utilisation), "num"],
    ["For its flows", c => (c.available_bps === null ? "–" : rate(c.available_bps)), "num"],
    ["Capacity", c => rate(c.capacity_bps), "num"],
  ], s.congestion, "No agent is connected.");
  const directions = s.topology.links.flatMap(l => [[l.a, l.b, l.a_to_b, l.congestion], [l.b, l.a, l.b_to_a, l.congestion]]);
  table("links", [
    ["From", ([a]) => `${short(a.switch)}:${a.port}`, "mono"],
    ["To", ([, b]) => `${short(b.switch)}:${b.port}`, "mono"],
    ["Load", ([, , load]) => loadBar(load)],
    ["Of capacity", ([, , load]) => part(load && load.utilisation), "num"],
    ["Dropped", ([, , load]) => (load ? `${load.dropped}` : "–"), "num"],
  ], directions, "No link has been found.");
  $("flow-count").textContent = s.flows.length > 200 ? `the fastest 200 of ${s.flows.length}` : "";
  table("flows", [
    ["From", f => `${f.source}:${f.source_port}`, "mono"],
    ["To", f => `${f.destination}:${f.destination_port}`, "mono"],
    ["Port", f => f.interface],
    ["Class", f => f.class],
    ["Leaf", f => f.leaf],
    ["Rate", f => rate(f.rate_bps), "num"],
    ["Allowed", f => (f.allocation_bps === null ? "–" : rate(f.allocation_bps)), "num"],
    ["RTT", f => (f.rtt_s === null ? "–" : `${(1000 * f.rtt_s).toFixed(1)} ms`), "num"],
  ], s.flows.slice(0, 200), "No flow is known. Agents report their flows every second.");
  document.body.dataset.shown = String(Number(document.body.dataset.shown || 0) + 1);
}

function happened(events) {
  const list = $("events");
  for (const e of events) {
    const bad = e.severity !== "info", good = /up|new|clear/.test(e.kind);
    const li = node("li", undefined, bad ? "bad" : good ? "good" : "");
    li.append(node("time", new Date(1000 * e.time).toLocaleTimeString("en-GB")), node("span", e.kind, "kind"), node("span", e.text));
    list.prepend(li);
  }
  while (list.children.length > EVENTS_SHOWN) list.lastChild.remove();
}

function live(word, className) {
  $("live").textContent = word;
  $("live").className = `state ${className}`;
}

$("legend").append(...[["l0", "idle or not known"], ["l1", "below 60 %"], ["l2", "60 to 90 %"], ["l3", "above 90 %"]].map(([c, text]) => {
  const e = node("span");
  e.append(node("i", undefined, c), text);
  return e;
}));
$("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});

const source = new EventSource("/api/v1/live");
// A new connection starts with all events again.
source.addEventListener("open", () => { $("events").replaceChildren(); live("live", "yes"); });
source.addEventListener("error", () => live("no controller", "no"));
source.addEventListener("state", e => show(JSON.parse(e.data)));
source.addEventListener("events", e => happened(JSON.parse(e.data)));
