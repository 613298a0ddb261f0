/** The pace of drawing: new rows come 40 times per second, but drawing many rows can take longer than that. */

let isWaiting = false;
let restUntil = 0;

/** Calls `draw` soon. After each drawing, the page waits as long as the drawing took, so that it can respond to input. */
export function drawSoon(draw: () => void): void {
  if (isWaiting) return;
  isWaiting = true;
  setTimeout(
    () => {
      isWaiting = false;
      const start = performance.now();
      draw();
      // The next task after the next frame begins when everything is drawn.
      requestAnimationFrame(() =>
        setTimeout(() => {
          const now = performance.now();
          restUntil = now + (now - start);
        }),
      );
    },
    Math.max(0, restUntil - performance.now()),
  );
}
