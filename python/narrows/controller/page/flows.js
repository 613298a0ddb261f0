// The table of flows. The controller searches and sorts flows and divides them into pages, so that an update stays small.
"use strict";

const FLOWS_SHOWN = 100;
const FLOW_COLUMNS = [
  ["From", f => `${f.source}:${f.source_port}`, "mono"],
  ["To", f => `${f.destination}:${f.destination_port}`, "mono"],
  ["Port", f => link(f.interface, portHref(`${f.agent}/${f.interface}`))],
  ["Class", f => f.class],
  ["Leaf", f => f.leaf],
  ["Rate", f => rate(f.rate_bps), "num"],
  ["Allocated", f => rate(f.allocation_bps), "num"],
  ["Used", f => part(f.allocation_bps ? f.rate_bps / f.allocation_bps : null), "num"],
  ["RTT", f => delay(f.rtt_s), "num"],
];

class FlowList {
  // port: identifier of the port whose flows are listed, or "" for the flows of all ports.
  constructor(root, id, port) {
    this.port = port; this.offset = 0; this.request = null; this.timer = null;
    this.search = node("input", undefined, "", { type: "search", placeholder: "10.0.0.1 5201 elephant", maxlength: 200, id: `${id}-search` });
    this.class = choice([["", "all"], ["rated", "rated"], ["other-tcp", "other TCP"], ["udp", "UDP"]]);
    this.order = choice([["fastest", "fastest first"], ["slowest", "slowest first"], ["share", "lowest share of its rate first"], ["rtt", "longest RTT first"]]);
    this.says = node("p", undefined, "count", { role: "status" });
    this.back = node("button", "Previous", "", { type: "button" });
    this.next = node("button", "Next", "", { type: "button" });
    this.table = node("table", undefined, "", { id });
    const controls = node("form", undefined, "controls", { role: "search" }), pages = node("div", undefined, "pages");
    const scroll = node("div", undefined, "scroll tall", { tabindex: 0, role: "region", "aria-label": "Table of flows" });
    pages.append(this.says, this.back, this.next);
    controls.append(labelled("Search flows", this.search, "grow"), labelled("Class", this.class), labelled("Order", this.order));
    scroll.append(this.table);
    root.replaceChildren(controls, pages, scroll);
    controls.addEventListener("submit", e => e.preventDefault());
    const again = () => { this.offset = 0; this.refresh(true); };
    this.search.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(again, 150); });
    this.class.addEventListener("change", again);
    this.order.addEventListener("change", again);
    this.back.addEventListener("click", () => { this.offset = Math.max(0, this.offset - FLOWS_SHOWN); this.refresh(true); });
    this.next.addEventListener("click", () => { this.offset += FLOWS_SHOWN; this.refresh(true); });
  }

  // A regular refresh is skipped while the last request is not answered. A changed search replaces the last request.
  async refresh(replace = false) {
    if (this.request && !replace) return;
    if (this.request) this.request.abort();
    const request = (this.request = new AbortController());
    const query = new URLSearchParams({ search: this.search.value, port: this.port, class: this.class.value, order: this.order.value, offset: this.offset, limit: FLOWS_SHOWN });
    try {
      const answer = await fetch(`/api/v1/flows?${query}`, { signal: request.signal });
      if (answer.ok) this.show(await answer.json(), Number(answer.headers.get("X-Total-Count")));
    } catch (error) {
      if (error.name !== "AbortError" && !(error instanceof TypeError)) throw error; // the live stream reports a lost controller
    } finally {
      if (this.request === request) this.request = null;
    }
  }

  show(flows, total) {
    if (!flows.length && total > 0 && this.offset > 0) { this.offset = 0; this.refresh(true); return; }
    const filtered = this.search.value.trim() || this.class.value;
    const says = total ? `${count(this.offset + 1)} to ${count(this.offset + flows.length)} of ${count(total)} flows` : "";
    if (this.says.textContent !== says) this.says.textContent = says;
    this.back.disabled = this.offset === 0;
    this.next.disabled = this.offset + flows.length >= total;
    this.back.hidden = this.next.hidden = total <= FLOWS_SHOWN;
    table(this.table, FLOW_COLUMNS, flows, filtered ? "No flow matches." : "No flow is known. Agents report their flows every second.");
  }
}
