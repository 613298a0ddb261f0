// Runs an example in place: a click on the link below the example opens the playground in a frame below the link, and
// a second click closes it. Without this script, and with Ctrl or another such key, the link opens the whole page.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.play");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const line = link.parentElement;
  const shown = line.nextElementSibling;
  const isOpen = shown?.classList.contains("play-frame");
  if (isOpen) {
    shown.remove();
    link.textContent = link.dataset.text;
  } else {
    const frame = document.createElement("iframe");
    frame.src = link.href;
    frame.title = "The example in the playground";
    const page = document.createElement("a");
    page.href = link.href;
    page.target = "_blank";
    page.textContent = "Open in a tab of its own";
    const box = document.createElement("div");
    box.className = "play-frame";
    box.append(frame, page);
    line.after(box);
    link.dataset.text = link.textContent;
    link.textContent = "Close the playground";
  }
  link.setAttribute("aria-expanded", String(!isOpen));
});
