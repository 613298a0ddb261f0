// Time series of the last hour, drawn by uPlot.
"use strict";

const HISTORY_MS = 5000, CHART_HEIGHT = 190, PORTS_DRAWN = 6;
const charts = new Set();

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The series of some ports. Each request asks only for the intervals that are newer than the known ones.
class HistoryOf {
  constructor() { this.reset([]); }

  reset(ports) { this.ports = ports; this.data = new Map(); this.last = -1; this.times = []; }

  // Requests new intervals, and returns whether there are any. If the ports have changed, it starts with no data.
  async update(ports) {
    if (ports.join("\n") !== this.ports.join("\n")) this.reset(ports);
    if (!ports.length) return false;
    const query = new URLSearchParams([...ports.map(port => ["port", port]), ["after", this.last]]);
    const answer = await fetch(`/api/v1/history?${query}`);
    if (!answer.ok) throw new Error(`history: ${answer.status}`);
    const found = await answer.json();
    if (ports.join("\n") !== this.ports.join("\n")) return false;
    for (const s of found) {
      if (s.last < this.last) { this.reset(ports); return this.update(ports); } // the controller has restarted
      this.merge(s);
    }
    if (!found.length) return false;
    this.last = found[0].last;
    // Take the longest series, because a port that is new to the history has fewer values than the others.
    const { end_s, step_s } = found[0], n = Math.max(...[...this.data.values()].map(all => all.flows.length));
    this.times = Array.from({ length: n }, (_, i) => end_s - (n - 1 - i) * step_s);
    return true;
  }

  merge(s) {
    const keep = Math.round(3600 / s.step_s), old = this.data.get(s.port);
    const all = {};
    for (const name of ["tx_bps", "rx_bps", "flows_bps", "queue_s", "flows"]) all[name] = [...(old ? old[name] : []), ...s[name]].slice(-keep);
    this.data.set(s.port, all);
  }

  // The values of a port. If there are fewer values than times, null fills the start.
  column(port, name) {
    const have = this.data.get(port), n = this.times.length;
    if (!have) return new Array(n).fill(null);
    return [...new Array(Math.max(0, n - have[name].length)).fill(null), ...have[name]].slice(-n);
  }
}

// lines: [label, colour, dash]. `format` formats values of the axis and the legend. `least` is the smallest range of the axis.
class Chart {
  constructor(root, title, lines, format, least) {
    this.root = root; this.title = title; this.least = least; this.lines = lines; this.format = format; this.data = null;
    this.box = node("div", undefined, "plot", { role: "img" });
    this.says = node("p", undefined, "says");
    const figure = node("figure", undefined, "chart");
    figure.append(node("figcaption", title), this.box, this.says);
    root.append(figure);
    this.seen = new ResizeObserver(() => { if (this.plot && this.box.clientWidth) this.plot.setSize({ width: this.box.clientWidth, height: CHART_HEIGHT }); });
    this.seen.observe(this.box);
    charts.add(this);
  }

  remove() { charts.delete(this); this.seen.disconnect(); if (this.plot) this.plot.destroy(); this.root.replaceChildren(); }

  draw(data) {
    this.data = data;
    if (!this.plot) this.make();
    else {
      // If the user has selected a part of the time axis, keep it.
      this.plot.setData(data, !this.zoomed);
      if (this.zoomed) this.plot.redraw();
      this.latest();
    }
    this.describe();
  }

  // If no pointer is over the chart, the legend shows the latest values.
  latest() { if (this.plot.cursor.idx === null || this.plot.cursor.idx === undefined || this.plot.cursor.left < 0) this.plot.setLegend({ idx: this.data[0].length - 1 }, false); }

  make() {
    if (this.plot) this.plot.destroy();
    this.zoomed = false;
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--faint"), width: 1 }, ticks: { stroke: colour("--faint"), width: 1 }, font: "12px sans-serif" };
    this.plot = new uPlot({
      width: this.box.clientWidth || 300, height: CHART_HEIGHT,
      cursor: { points: { size: 6 }, drag: { x: true, y: false } },
      legend: { live: true },
      // Show at least five minutes, because the first values would otherwise fill an axis of a few seconds.
      scales: { x: { time: true, range: (_, low, high) => [Math.min(low, high - 300), high] }, y: { range: (_, low, high) => [0, Math.max(1.08 * (high || 0), this.least)] } },
      axes: [{ ...axis, size: 32, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]], space: 70 },
        { ...axis, size: 88, values: (_, ticks) => ticks.map(v => this.format(v)) }],
      series: [{ label: "Time", value: (_, v) => (v === null ? "–" : clock(v)) },
        ...this.lines.map(([label, stroke, dash]) => ({ label, stroke: colour(stroke), dash, width: 1.6, points: { show: u => u.data[0].length < 30, size: 5 }, value: (_, v) => (v === null || v === undefined ? "–" : this.format(v)) }))],
      hooks: { setCursor: [() => this.plot && this.latest()], setSelect: [u => { if (u.select.width > 0) this.zoomed = true; }] },
    }, this.data, this.box);
    this.plot.over.addEventListener("dblclick", () => { this.zoomed = false; });
    this.latest();
  }

  // Describes the chart in words, for readers who cannot see the drawing.
  describe() {
    const words = this.lines.map(([label], i) => {
      const values = this.data[i + 1].filter(v => v !== null);
      return values.length ? `${label}: now ${this.format(values[values.length - 1])}, maximum ${this.format(Math.max(...values))}` : `${label}: no values`;
    });
    this.box.setAttribute("aria-label", `${this.title}, last hour. ${words.join(". ")}.`);
    this.says.textContent = this.data[0].length ? "" : "Nothing is recorded yet. The first values appear after five seconds.";
  }
}

const COLOURS = ["--line-0", "--line-1", "--line-2", "--line-3", "--line-4", "--line-5"];
const DASHES = [undefined, [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]];
const redrawCharts = () => charts.forEach(chart => chart.data && chart.make());

// The charts of the overview, in which each line is a port.
const overview = { history: new HistoryOf(), key: "", drawn: [] };
async function drawOverview(state) {
  const ports = [...state.congestion].sort((a, b) => b.queued_bytes / b.capacity_bps - a.queued_bytes / a.capacity_bps || a.key.localeCompare(b.key))
    .slice(0, PORTS_DRAWN).map(c => [c.key, `${c.interface} of ${c.agent}`]).sort((a, b) => a[0].localeCompare(b[0]));
  $("h-series").parentElement.hidden = !ports.length;
  if (!ports.length) return;
  await overview.history.update(ports.map(([key]) => key));
  const key = JSON.stringify(ports);
  if (overview.key !== key) {
    overview.key = key;
    overview.drawn.forEach(chart => chart.remove());
    const lines = ports.map(([, label], i) => [label, COLOURS[i], DASHES[i]]);
    overview.drawn = [new Chart($("chart-rates"), "Rates of flows", lines, rate, 1e6), new Chart($("chart-queues"), "Longest queueing delay", lines, delay, 1e-3)];
    $("series-note").textContent = state.congestion.length > ports.length ? `the ${ports.length} longest queues of ${state.congestion.length} ports` : "";
  }
  const h = overview.history, columns = name => [h.times, ...ports.map(([port]) => h.column(port, name))];
  overview.drawn[0].draw(columns("flows_bps"));
  overview.drawn[1].draw(columns("queue_s"));
}

// The charts of one port.
const onePort = { history: new HistoryOf(), key: "", drawn: [] };
// Called on a new connection. The controller may have restarted, and then numbers its intervals differently.
function forgetHistory() { overview.history.reset([]); onePort.history.reset([]); }
function clearPortCharts() {
  onePort.drawn.forEach(chart => chart.remove());
  onePort.drawn = [];
  onePort.key = "";
}
async function drawPort(key, capacityBps) {
  await onePort.history.update([key]);
  const h = onePort.history, hasAgent = h.column(key, "flows").some(v => v !== null) || !/^[0-9a-f]{16}:\d+$/.test(key);
  const shape = JSON.stringify([key, capacityBps, hasAgent]);
  if (onePort.key !== shape) {
    clearPortCharts();
    onePort.key = shape;
    const lines = [["Sent", "--line-0"], ["Received", "--line-1", [8, 4]]];
    if (hasAgent) lines.push(["Flows", "--line-2", [2, 3]]);
    if (capacityBps) lines.push(["Capacity", "--soft", [10, 3, 2, 3]]);
    onePort.drawn.push(new Chart($("chart-port-rates"), "Rates", lines, rate, 1e6));
    if (hasAgent) {
      onePort.drawn.push(new Chart($("chart-port-queue"), "Longest queueing delay", [["Queue", "--line-3"]], delay, 1e-3));
      onePort.drawn.push(new Chart($("chart-port-flows"), "Number of flows", [["Flows", "--line-2"]], n => count(Math.round(10 * n) / 10), 10));
    }
  }
  const names = ["tx_bps", "rx_bps", ...(hasAgent ? ["flows_bps"] : [])];
  const data = [h.times, ...names.map(name => h.column(key, name))];
  if (capacityBps) data.push(h.times.map(() => capacityBps));
  onePort.drawn[0].draw(data);
  if (hasAgent) {
    onePort.drawn[1].draw([h.times, h.column(key, "queue_s")]);
    onePort.drawn[2].draw([h.times, h.column(key, "flows")]);
  }
}
