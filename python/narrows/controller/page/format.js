// Helpers for units, elements and tables. All text from the network is set as textContent, never as HTML.
"use strict";

const $ = id => document.getElementById(id);

function rate(bps) {
  if (bps === null || bps === undefined) return "–";
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
const delay = s => (s === null || s === undefined ? "–" : `${(1000 * s).toFixed(1)} ms`);
const count = n => n.toLocaleString("en");
const part = u => (u === null || u === undefined ? "–" : `${(100 * u).toFixed(0)} %`);
const short = id => "s" + (id.replace(/^0+/, "") || "0");
// The address of the page of a port.
const portHref = key => `#port=${encodeURIComponent(key)}`;

function clock(unixS) {
  const at = new Date(1000 * unixS), time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString("en-CA")} ${time}`;
}

function node(name, text, className, attributes = {}) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

// Cell contents that are not text. They have a function that makes the element, and a key that changes with the contents.
const made = (key, make) => ({ key: JSON.stringify(key), make });
const link = (text, href) => made(["a", text, href], () => node("a", text, "", { href }));

function setCell(td, value) {
  const key = typeof value === "string" ? `text ${value}` : value.key;
  if (td.shown === key) return;
  td.shown = key;
  if (typeof value === "string") td.textContent = value;
  else td.replaceChildren(value.make());
}

// Changes a table in place, so that focus and selection are kept. columns: [heading, cell(row), class].
function table(t, columns, rows, none) {
  if (!rows.length) {
    t.replaceChildren();
    t.insertRow().append(node("td", none, "none"));
    t.filled = false;
    return;
  }
  if (!t.filled) {
    const line = node("tr"), head = node("thead");
    line.append(...columns.map(([heading, , className]) => node("th", heading, className, { scope: "col" })));
    head.append(line);
    t.replaceChildren(head, node("tbody"));
    t.filled = true;
  }
  const body = t.tBodies[0];
  while (body.rows.length > rows.length) body.lastChild.remove();
  while (body.rows.length < rows.length) body.insertRow().append(...columns.map(([, , className]) => node("td", undefined, className)));
  rows.forEach((row, i) => columns.forEach(([, cell], j) => setCell(body.rows[i].cells[j], cell(row))));
}

// Changes a list in place. Each item makes its own li element.
function list(ul, items) {
  while (ul.children.length > items.length) ul.lastChild.remove();
  items.forEach((item, i) => {
    const have = ul.children[i];
    if (have && have.shown === item.key) return;
    const li = item.make();
    li.shown = item.key;
    if (have) have.replaceWith(li); else ul.append(li);
  });
}

function loadBar(load) {
  if (!load) return "–";
  const width = load.utilisation === null ? null : Math.round(Math.min(100, 100 * load.utilisation));
  return made([rate(load.tx_bps), width, level(load)], () => {
    const e = node("span");
    if (width !== null) {
      const bar = node("span", undefined, "bar"), fill = node("i", undefined, `l${level(load)}`);
      fill.style.width = `${width}%`;
      bar.append(fill);
      e.append(bar);
    }
    e.append(rate(load.tx_bps));
    return e;
  });
}
function pill(kind) {
  const words = { queue: "standing queue", burst: "burst" };
  return made(["pill", kind], () => node("span", kind ? words[kind] : "clear", kind ? "pill no" : "pill"));
}
function definitions(list, all) {
  const have = [...list.children];
  if (have.length !== all.length) list.replaceChildren(...all.map(([name]) => { const d = node("div"); d.append(node("dt", name), node("dd")); return d; }));
  all.forEach(([name, value, className = ""], i) => {
    const [dt, dd] = list.children[i].children;
    if (dt.textContent !== name) dt.textContent = name;
    setCell(dd, typeof value === "number" ? String(value) : value);
    dd.className = className;
  });
}
// A control with its label.
function labelled(text, control, className) {
  const e = node("label", undefined, className);
  e.append(node("span", text), control);
  return e;
}
function choice(options) {
  const e = node("select");
  for (const [value, text] of options) e.append(node("option", text, "", { value }));
  return e;
}
