// Draws the network. The layout minimises stress, so that distances of switches approach their numbers of hops (Zheng,
// Pawar, Goodman, "Graph drawing by stochastic gradient descent", 2019; pairs are in a fixed order, so it is reproducible).
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LENGTH = 165, STEPS = 60, HOST_DISTANCE = 78, FAR = 8;
// The last layout. It is reused while the set of switches and links is the same.
let placed = { key: "", at: new Map() };

// Numbers of hops between all pairs of switches, by breadth-first search (FAR: there is no path).
function hops(ids, links) {
  const near = new Map(ids.map(id => [id, []]));
  for (const { a, b } of links) if (near.has(a.switch) && near.has(b.switch)) { near.get(a.switch).push(b.switch); near.get(b.switch).push(a.switch); }
  return ids.map(from => {
    const far = new Map([[from, 0]]), queue = [from];
    for (const id of queue) for (const next of near.get(id)) if (!far.has(next)) { far.set(next, far.get(id) + 1); queue.push(next); }
    return ids.map(id => far.get(id) ?? FAR);
  });
}

function places(switches, links) {
  const ids = switches.map(s => s.id), key = JSON.stringify([ids, links.map(l => [l.a, l.b])]);
  if (placed.key === key) return placed.at;
  const n = ids.length, radius = (LENGTH * n) / 6;
  const nodes = ids.map((id, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI * 0.8;
    return placed.at.get(id) ? { ...placed.at.get(id) } : { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
  const apart = hops(ids, links);
  for (let step = 0; step < STEPS; step++) {
    const eta = 4 * Math.exp((-5 * step) / STEPS);
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) {
      const p = nodes[i], q = nodes[j], h = apart[i][j];
      const dx = p.x - q.x, dy = p.y - q.y, d = Math.hypot(dx, dy) || 1;
      const move = (Math.min(1, eta / (h * h)) * (d - h * LENGTH)) / 2 / d;
      p.x -= move * dx; p.y -= move * dy; q.x += move * dx; q.y += move * dy;
    }
  }
  placed = { key, at: new Map(ids.map((id, i) => [id, nodes[i]])) };
  return placed.at;
}

function element(name, attributes, parent, text) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}

// The level of a load, from 0 (idle or unknown) to 3 (full).
function level(load) {
  if (!load) return 0;
  const u = load.utilisation;
  if (u === null) return load.tx_bps > 1000 ? 1 : 0;
  return u >= 0.9 ? 3 : u >= 0.6 ? 2 : u >= 0.01 ? 1 : 0;
}

function figureOf(load) {
  if (!load) return "";
  return load.utilisation === null ? rate(load.tx_bps) : `${Math.round(100 * load.utilisation)} %`;
}

// Draws one direction of a link, as the half from its sender to the middle. Returns a function that computes the place of the
// direction's figure from the size of the text. The figure is next to the line, on the left in the direction of travel.
function half(svg, from, to, load, offset) {
  const mx = (from.x + to.x) / 2, my = (from.y + to.y) / 2;
  const dx = to.x - from.x, dy = to.y - from.y, d = Math.hypot(dx, dy) || 1;
  const ox = (-dy / d) * offset, oy = (dx / d) * offset;
  const width = load && load.utilisation ? 3 + 5 * Math.min(1, load.utilisation) : 3;
  element("path", { class: `link l${level(load)}`, d: `M${from.x + ox} ${from.y + oy}L${mx + ox} ${my + oy}`, "stroke-width": width }, svg);
  return zoom => {
    const aside = offset + 5 + (zoom * (7 * Math.abs(dx) + 16 * Math.abs(dy))) / d;
    return { x: from.x + 0.33 * dx + (dy / d) * aside, y: from.y + 0.33 * dy - (dx / d) * aside };
  };
}

function drawTopology(svg, topology) {
  const { switches, links, hosts } = topology, at = places(switches, links);
  svg.replaceChildren();
  const seen = new Map(), box = { l: 0, r: 0, t: 0, b: 0 };
  const cover = (x, y, w, h) => { box.l = Math.min(box.l, x - w); box.r = Math.max(box.r, x + w); box.t = Math.min(box.t, y - h); box.b = Math.max(box.b, y + h); };
  const figures = [];
  for (const l of links) {
    const p = at.get(l.a.switch), q = at.get(l.b.switch);
    if (!p || !q) continue;
    const pair = [l.a.switch, l.b.switch].join(), count = seen.get(pair) || 0, offset = count * 14;
    seen.set(pair, count + 1);
    figures.push([half(svg, p, q, l.a_to_b, offset), figureOf(l.a_to_b)], [half(svg, q, p, l.b_to_a, -offset), figureOf(l.b_to_a)]);
    if (l.congestion) element("path", { class: "hot", d: `M${p.x} ${p.y}L${q.x} ${q.y}` }, svg);
  }
  // Hosts fan out on the side that faces away from the centre.
  const centre = { x: 0, y: 0 };
  for (const p of at.values()) { centre.x += p.x / at.size; centre.y += p.y / at.size; }
  for (const s of switches) {
    const p = at.get(s.id), own = hosts.filter(h => h.at.switch === s.id), shown = own.slice(0, 8);
    const away = at.size > 1 ? Math.atan2(p.y - centre.y, p.x - centre.x) : -Math.PI / 2;
    shown.forEach((h, i) => {
      const angle = away + (i - (shown.length - 1) / 2) * Math.min(0.75, 4 / shown.length);
      const x = p.x + HOST_DISTANCE * Math.cos(angle), y = p.y + HOST_DISTANCE * Math.sin(angle);
      element("path", { class: "stub", d: `M${p.x} ${p.y}L${x} ${y}` }, svg);
      const g = element("g", { class: "host" }, svg);
      element("circle", { cx: x, cy: y, r: 7 }, g);
      const label = i === 7 && own.length > 8 ? `and ${own.length - 7} more` : h.ips.find(ip => ip.includes(".")) || h.ips[0] || h.mac;
      element("text", { x, y: y + (Math.sin(angle) >= -0.3 ? 19 : -18) }, g, label);
      cover(x, y, 62, 30);
    });
    const g = element("g", { class: s.held ? "switch held" : "switch" }, svg);
    element("rect", { x: p.x - 34, y: p.y - 15, width: 68, height: 30, rx: 6 }, g);
    element("text", { x: p.x, y: p.y }, g, "s" + (s.id.replace(/^0+/, "") || "0").slice(-8));
    element("title", {}, g, `${s.id}: ${s.rules} entries`);
    cover(p.x, p.y, 60, 34);
  }
  // Never enlarge the drawing. Otherwise a single switch would fill the width of the page.
  const w = Math.max(box.r - box.l, Math.min(680, svg.clientWidth || 680)), h = Math.max(box.b - box.t, 120);
  svg.setAttribute("viewBox", `${(box.l + box.r - w) / 2} ${(box.t + box.b - h) / 2} ${w} ${h}`);
  svg.style.maxHeight = "34rem";
  // Keep the size of text if the drawing shrinks on a narrow screen.
  const zoom = Math.min(1.8, Math.max(1, w / (svg.clientWidth || w)));
  svg.style.setProperty("--zoom", zoom);
  for (const [place, text] of figures) if (text) element("text", { class: "figure", ...place(zoom) }, svg, text);
}
