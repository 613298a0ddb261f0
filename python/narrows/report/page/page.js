// Draws each chart when it comes near the window or before it is printed, and draws it again when the theme changes.
(() => {
  "use strict";
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const swap = JSON.parse(document.getElementById("swap").textContent);
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  const coloured = (spec) => {
    const text = JSON.stringify(spec);
    return JSON.parse(isDark() ? text.replace(/#[0-9a-f]{6}/g, (c) => swap[c] || c) : text);
  };

  const draw = async (place) => {
    const spec = coloured(specs[place.dataset.figure][Number(place.dataset.panel)]);
    if (spec.width === "container") spec.autosize = { type: "fit-x", contains: "padding" };
    if (views.has(place)) views.get(place).finalize();
    try {
      const result = await vegaEmbed(place, spec, { actions: false, renderer: "svg", tooltip: { theme: isDark() ? "dark" : "light" } });
      views.set(place, result.view);
      // Vega computes a chart's height before it decides whether to rotate labels. Rotated labels may extend below it.
      const svg = place.querySelector("svg"), box = svg.getBBox();
      place.style.paddingBottom = Math.max(0, Math.ceil(box.y + box.height - svg.viewBox.baseVal.height)) + "px";
      place.dataset.drawn = "yes";
    } catch (error) {
      place.textContent = "This chart could not be drawn: " + error.message;
      console.error(error);
    }
  };

  const places = [...document.querySelectorAll(".chart")];
  const begun = new Set();
  const once = async (place) => {
    if (begun.has(place)) return;
    begun.add(place);
    await draw(place);
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      once(entry.target);
    }
  }, { rootMargin: "800px" });
  places.forEach((place) => watcher.observe(place));

  // Charts out of view are drawn one by one in idle time, so that a page that is searched, saved or captured as a
  // whole has no gaps.
  const idle = window.requestIdleCallback ?? ((task) => setTimeout(task, 50));
  const next = () => {
    const place = places.find((p) => !begun.has(p));
    if (place) once(place).finally(() => idle(next));
  };
  idle(next);
  const rest = () => Promise.all(places.filter((place) => !place.dataset.drawn).map(draw));
  window.narrowsDrawAll = rest;

  // The browser runs all pending promises before it prints, and drawing needs nothing else. So charts that are missing
  // or dark are drawn in time, in the colours for white paper.
  let before;
  window.addEventListener("beforeprint", () => {
    const dark = isDark();
    before = root.dataset.theme;
    root.dataset.theme = "light";
    places.filter((place) => dark || !place.dataset.drawn).forEach((place) => {
      begun.add(place);
      draw(place);
    });
  });
  window.addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    if (isDark()) redraw();
  });

  const redraw = () => places.filter((place) => place.dataset.drawn).forEach(draw);
  system.addEventListener("change", () => { if (!root.dataset.theme) redraw(); });
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    redraw();
  });

  // Mark the section in view in the table of contents.
  const links = new Map([...document.querySelectorAll(".toc a")].map((a) => [a.hash.slice(1), a]));
  const marker = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (link && entry.isIntersecting) {
        links.forEach((other) => other.removeAttribute("aria-current"));
        link.setAttribute("aria-current", "true");
      }
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  document.querySelectorAll("main section").forEach((section) => marker.observe(section));
})();
