// The overview and the page of a port. The data come from the stream /api/v1/live.
"use strict";

let state = null, events = [], drawing = false;
const flowList = new FlowList($("flow-list"), "flows", "");
const eventList = new EventList($("event-list"), "events");
let portFlows = null, portEvents = null;

function portShown() {
  const found = /^#port=(.+)$/.exec(location.hash);
  try { return found ? decodeURIComponent(found[1]) : null; } catch { return null; }
}

const queueOf = c => `${bytes(c.queued_bytes)}, ${delay(c.capacity_bps ? (8 * c.queued_bytes) / c.capacity_bps : null)}`;
const PORT_COLUMNS = [
  ["Port", c => link(`${c.interface} of ${c.agent}`, portHref(c.key))],
  ["Rate controller", c => c.rate_controller],
  ["State", c => (c.rate_controller === "brf" ? pill(c.kind) : "–")],
  ["For", c => span(c.seconds), "num"],
  ["Queue", queueOf, "num"],
  ["Arrivals", c => part(c.arrivals), "num"],
  ["Link (eq. 5)", c => part(c.netcard_rate), "num"],
  ["Link (PACEC)", c => part(c.utilisation), "num"],
  ["For its flows", c => rate(c.available_bps), "num"],
  ["Capacity", c => rate(c.capacity_bps), "num"],
];

// Alerts that have begun and not ended, and whether they reach their receivers.
function showAlerts(a) {
  $("alert-section").hidden = !a.configured;
  if (!a.configured) return;
  const items = a.active.map(one => made(["alert", one], () => {
    const li = node("li", undefined, one.severity), where = one.interface ? `${one.interface} of ${one.agent}` : one.agent;
    li.append(node("b", one.severity, "severity"), node("span", one.name), node("span", `since ${clock(one.since)}`, "since"));
    li.append(one.interface ? node("a", where, "", { href: portHref(`${one.agent}/${one.interface}`) }) : node("span", where), node("span", one.text, "what"));
    return li;
  }));
  if (a.left_out) items.push(made(["left out", a.left_out], () => node("li", `${count(a.left_out)} more alerts`)));
  if (!items.length) items.push(made("none", () => node("li", "No threshold is exceeded.", "none")));
  list($("alerts"), items);
  list($("receivers"), a.receivers.map(r => {
    const says = r.error ? `failed: ${r.error}` : r.delivered ? `accepted alerts at ${clock(r.delivered)}` : "nothing was sent yet";
    return made([r.url, says], () => node("li", `Alertmanager ${r.url}: ${says}`, r.error ? "failed" : ""));
  }));
}

function showOverview(s) {
  showAlerts(s.alerts);
  const congested = s.congestion.filter(c => c.kind).length;
  definitions($("facts"), [
    ["Switches", s.topology.switches.length], ["Links", s.topology.links.length], ["Hosts", s.topology.hosts.length],
    ["Agents", s.agents.length], ["Flows", count(s.flow_count)],
    ...(s.alerts.configured ? [["Alerts", s.alerts.active.length, s.alerts.active.length ? "no" : ""]] : []),
    ["Congested ports", congested, congested ? "no" : ""], ["Running", span(s.uptime_s)], ["Role", s.active ? "active" : "standby"], ["Agents' keys", s.authenticated ? "yes" : "none, this host only"],
  ]);
  $("no-switches").hidden = s.topology.switches.length > 0;
  $("drawing").style.display = $("legend").style.display = s.topology.switches.length ? "" : "none";
  drawTopology($("drawing"), s.topology);
  table($("congestion"), PORT_COLUMNS, s.congestion, "No agent is connected.");
  const keys = new Map(s.topology.switches.flatMap(w => w.ports.map(p => [`${w.id}:${p.number}`, p.key])));
  const end = e => `${short(e.switch)}:${e.port}`;
  table($("links"), [
    ["From", ([a]) => link(end(a), portHref(keys.get(`${a.switch}:${a.port}`) || "")), "mono"],
    ["To", ([, b]) => end(b), "mono"],
    ["Load", ([, , load]) => loadBar(load)],
    ["Of capacity", ([, , load]) => part(load && load.utilisation), "num"],
    ["Dropped", ([, , load]) => (load ? String(load.dropped) : "–"), "num"],
  ], s.topology.links.flatMap(l => [[l.a, l.b, l.a_to_b], [l.b, l.a, l.b_to_a]]), "No link has been found.");
}

// Finds a port by its key. The port can belong to an agent, to a switch, or to both.
function findPort(s, key) {
  const own = s.congestion.find(c => c.key === key);
  for (const w of s.topology.switches) for (const p of w.ports) if (p.key === key) return { own, at: w, port: p };
  return own ? { own } : null;
}

function showPort(s, key) {
  const found = findPort(s, key), own = found && found.own, port = found && found.port;
  $("port-name").textContent = own ? `${own.interface} of ${own.agent}` : port ? `${port.name}, port ${port.number} of ${short(found.at.id)}` : key;
  $("port-gone").hidden = !!found;
  const load = port && port.load, all = [];
  if (own) {
    all.push(["State", own.kind === "queue" ? "standing queue" : own.kind || "clear", own.kind ? "no" : ""], ["For", span(own.seconds)], ["Rate controller", own.rate_controller],
      ["Queue", queueOf(own)], ["Arrivals of share", part(own.arrivals)]);
  }
  if (load) all.push(["Sent", rate(load.tx_bps)], ["Received", rate(load.rx_bps)], ["Dropped in the last interval", load.dropped]);
  if (own || load) all.push(["Capacity", rate(own ? own.capacity_bps : load.capacity_bps)]);
  if (port) all.push(["Switch", `${short(found.at.id)}:${port.number}, ${port.kind}`]);
  const agent = own && s.agents.find(a => a.name === own.agent);
  if (agent) all.push(["Agent", `${agent.address}, connected for ${span(agent.seconds)}`]);
  definitions($("port-facts"), all);
  $("port-flows").parentElement.hidden = !own;
}

// Shows the port that the page's address names, or the overview.
function route() {
  const key = portShown();
  $("overview").hidden = key !== null;
  $("port").hidden = key === null;
  clearPortCharts();
  portFlows = portEvents = null;
  $("port-facts").replaceChildren();
  if (key !== null) {
    const at = key.lastIndexOf("/"), words = at < 0 ? null : [key.slice(at + 1), key.slice(0, at)];
    portFlows = new FlowList($("port-flow-list"), "port-flows-table", key);
    const ofSwitch = /^([0-9a-f]{16}):(\d+)$/.exec(key);
    portEvents = new EventList($("port-event-list"), "port-events", e =>
      words ? words.every(word => ` ${e.text} `.includes(` ${word} `)) : ofSwitch !== null && e.text.includes(ofSwitch[1]));
    portEvents.set(events);
  }
  if (state) show();
  series();
}

function show() {
  $("name").textContent = state.name;
  const key = portShown();
  if (key === null) { showOverview(state); flowList.refresh(); } else { showPort(state, key); portFlows.refresh(); }
  document.title = key === null ? "Narrows controller" : `${$("port-name").textContent} – Narrows controller`;
  document.body.dataset.shown = String(Number(document.body.dataset.shown || 0) + 1);
}

async function series() {
  if (!state || drawing) return;
  drawing = true;
  try {
    const key = portShown();
    if (key === null) await drawOverview(state);
    else {
      const found = findPort(state, key);
      await drawPort(key, found ? (found.own ? found.own.capacity_bps : found.port.load && found.port.load.capacity_bps) : null);
    }
    document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the live stream reports a lost controller
  } finally {
    drawing = false;
  }
}

function live(word, className) {
  if ($("live").textContent === word) return;
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
  redrawCharts();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
addEventListener("hashchange", () => { route(); scrollTo(0, 0); if (portShown() !== null) $("port-name").focus(); });

const source = new EventSource("/api/v1/live?flows=false");
// On a new connection, the controller sends all events again.
source.addEventListener("open", () => { events = []; forgetHistory(); live("live", "yes"); });
source.addEventListener("error", () => live("no controller", "no"));
source.addEventListener("state", e => {
  const first = state === null;
  state = JSON.parse(e.data);
  show();
  if (first) series();
});
source.addEventListener("events", e => {
  events = [...events, ...JSON.parse(e.data)].slice(-EVENTS_KEPT);
  eventList.set(events);
  if (portEvents) portEvents.set(events);
});
setInterval(series, HISTORY_MS);
route();
