// The list of events, newest first.
"use strict";

const EVENTS_KEPT = 1000, EVENTS_SHOWN = 100;

class EventList {
  // matches: tells whether an event belongs to this list.
  constructor(root, id, matches = () => true) {
    this.all = []; this.matches = matches; this.shown = EVENTS_SHOWN;
    this.search = node("input", undefined, "", { type: "search", placeholder: "congestion eth1", maxlength: 200, id: `${id}-search` });
    this.severity = choice([["info", "all"], ["warning", "warnings and errors"], ["error", "errors"]]);
    this.says = node("p", undefined, "count", { role: "status" });
    this.list = node("ol", undefined, "events", { id });
    this.more = node("button", "Show older events", "", { type: "button" });
    const controls = node("form", undefined, "controls", { role: "search" });
    const scroll = node("div", undefined, "scroll tall", { tabindex: 0, role: "region", "aria-label": "List of events" });
    controls.append(labelled("Search events", this.search, "grow"), labelled("Severity", this.severity));
    scroll.append(this.list, this.more);
    root.replaceChildren(controls, this.says, scroll);
    controls.addEventListener("submit", e => e.preventDefault());
    const again = () => { this.shown = EVENTS_SHOWN; this.draw(); };
    this.search.addEventListener("input", again);
    this.severity.addEventListener("change", again);
    this.more.addEventListener("click", () => { this.shown += EVENTS_SHOWN; this.draw(); });
  }

  set(events) {
    this.all = events.filter(this.matches);
    this.draw();
  }

  draw() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = { info: 0, warning: 1, error: 2 }, least = wanted[this.severity.value];
    const found = this.all.filter(e => {
      const text = `${e.kind} ${e.text}`.toLowerCase();
      return wanted[e.severity] >= least && words.every(word => text.includes(word));
    });
    const number = severity => found.filter(e => e.severity === severity).length;
    const changes = found.reduce((sum, e) => sum + e.count, 0);
    const says = found.length
      ? `Events: ${count(found.length)}. Errors: ${number("error")}, warnings: ${number("warning")}, others: ${number("info")}.` + (changes > found.length ? ` Changes in them: ${count(changes)}.` : "")
      : this.all.length ? "No event matches." : "Nothing has happened yet.";
    if (this.says.textContent !== says) this.says.textContent = says;
    const visible = found.slice(-this.shown).reverse();
    // Make elements only for events that have none yet.
    const have = new Map([...this.list.children].map(li => [Number(li.dataset.id), li]));
    this.list.replaceChildren(...visible.map(e => have.get(e.id) || this.item(e)));
    this.more.hidden = found.length <= this.shown;
  }

  item(e) {
    const li = node("li", undefined, e.severity, { "data-id": e.id });
    const text = node("span", e.text, "what");
    if (e.count > 1) text.append(" ", node("b", `×${count(e.count)}`, "times", { title: `${e.count} changes in ${Math.round(e.seconds)} s` }));
    li.append(node("time", clock(e.time), "", { datetime: new Date(1000 * e.time).toISOString() }), node("span", e.severity, "severity"), node("span", e.kind, "kind"), text);
    return li;
  }
}
