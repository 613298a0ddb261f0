/** The figures as one SVG file, for papers and slides. */

import { figure } from "../format";
import { key, type Line } from "./lines";

export interface Panel {
  title: string;
  lines: Line[];
  most: number;
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP] = [900, 150, 60, 20, 26, 18];

export function figuresAsSvg(panels: Panel[], from: number, to: number, ink: string, paper: string): string {
  const total = panels.length * (HEIGHT + GAP + TOP) + 40;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${total}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${total}" fill="${paper}"/>`,
  ];
  panels.forEach((panel, i) => {
    parts.push(panelAsSvg(panel, i * (HEIGHT + GAP + TOP), from, to, ink));
  });
  const names = new Map(panels.flatMap(({ lines }) => lines).map((line) => [line.label, line]));
  let left = LEFT;
  for (const line of names.values()) {
    if (line.isGhost || line.label === "") continue;
    parts.push(
      `<rect x="${left}" y="${total - 24}" width="14" height="4" fill="${line.colour}"/>`,
      `<text x="${left + 20}" y="${total - 18}" fill="${ink}">${escaped(line.label)}</text>`,
    );
    left += 40 + line.label.length * 7;
  }
  return `${parts.join("\n")}\n</svg>\n`;
}

function panelAsSvg(
  { title, lines, most }: Panel,
  top: number,
  from: number,
  to: number,
  ink: string,
): string {
  const [x0, x1, y0, y1] = [LEFT, WIDTH - RIGHT, top + TOP + HEIGHT, top + TOP];
  const x = (t: number) => x0 + ((t - from) / (to - from)) * (x1 - x0);
  const y = (value: number) => y0 - (value / (most || 1)) * (y0 - y1);
  const parts = [
    `<text x="${x0}" y="${y1 - 8}" fill="${ink}" font-weight="600">${escaped(title)}</text>`,
    `<path d="M${x0} ${y1}V${y0}H${x1}" fill="none" stroke="${ink}"/>`,
  ];
  for (const share of [0, 0.5, 1]) {
    const value = most * share;
    parts.push(
      `<text x="${x0 - 6}" y="${y(value) + 4}" fill="${ink}" text-anchor="end">${figure(value)}</text>`,
    );
  }
  for (let i = 0; i <= 5; i++) {
    const t = from + ((to - from) * i) / 5;
    const label = `${Number(t.toPrecision(3))} s`;
    parts.push(`<text x="${x(t)}" y="${y0 + 14}" fill="${ink}" text-anchor="middle">${label}</text>`);
  }
  for (const line of lines) {
    const points = line.x
      .map((t, i) => [t, line.y[i]] as const)
      .filter(([t, value]) => key(t) >= key(from) && key(t) <= key(to) && Number.isFinite(value))
      .map(([t, value]) => `${x(t).toFixed(1)},${y(value as number).toFixed(1)}`);
    const style = line.isGhost
      ? 'stroke-dasharray="2 3" opacity="0.5"'
      : `stroke-dasharray="${line.dash.join(" ")}"`;
    parts.push(
      `<polyline points="${points.join(" ")}" fill="none" stroke="${line.colour}" stroke-width="${line.width}" ${style}/>`,
    );
  }
  return parts.join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
