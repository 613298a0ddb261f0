/**
 * The packets at the watched queue, in slow motion: they arrive from the left, wait, and leave to the right. Dropped
 * packets fall, and marked packets have a ring.
 */

import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { zoom } from "../charts/plot";
import { flowColour, inks } from "../colours";
import type { RunData } from "../data";
import { clock } from "../format";
import { linkSample, waiting } from "../model";
import { Fate } from "../packets";
import { playhead, setSpeed, speed } from "../playback";
import { run, tick } from "../state";

const HEIGHT = 76;
/** Where a waiting packet leaves the queue, as a share of the width. */
const [TAIL, HEAD] = [0.2, 0.7];

export function PacketView() {
  const place = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = place.current;
    if (canvas === null) return;
    let isWaiting = false;
    const draw = () => {
      isWaiting = false;
      if (run.peek() !== null) paint(canvas, run.peek() as RunData, playhead.peek());
    };
    return effect(() => {
      playhead.value;
      tick.value;
      inks.value;
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(draw);
    });
  }, []);
  const packetTime = run.value?.packets.packetTime(0) ?? 0.001;
  // The highest of these speeds at which the transmission of a full packet takes at least 0.05 s of real time.
  const slow = [0.1, 0.01, 0.001, 0.0001].find((value) => packetTime / value >= 0.05) ?? 0.0001;
  const isSlow = speed.value <= 0.1;
  const watch = () => {
    setSpeed(slow, true);
    const [from, to] = zoom.value ?? [0, Number.POSITIVE_INFINITY];
    if (playhead.value < from || playhead.value > to) playhead.value = from;
  };
  return (
    <div class="packets">
      <canvas
        ref={place}
        height={HEIGHT}
        role="img"
        aria-label="Packets that arrive at the queue, wait in it, leave it, or are dropped"
      />
      {!isSlow && (
        <button type="button" id="slow-motion" onClick={watch}>
          Watch packets in slow motion
        </button>
      )}
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, current: RunData, now: number): void {
  const width = canvas.clientWidth;
  const ratio = devicePixelRatio;
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = HEIGHT * ratio;
  }
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, HEIGHT);
  const ink = inks.value;
  const { packets: log, network } = current;
  const [tail, head, middle] = [width * TAIL, width * HEAD, 38];
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = ink.grey;
  context.fillText("arriving", 4, 12);
  context.fillText("queue", tail, 12);
  context.fillText("on the link", head + 16, 12);
  context.strokeStyle = ink.faint;
  context.strokeRect(tail - 0.5, middle - 13.5, head - tail + 1, 27);
  if (log.arrived.length === 0) return;
  const end = log.arrived[log.arrived.length - 1] as number;
  if (current.packetsAreCut && now > end) {
    context.fillStyle = ink.grey;
    context.fillText(`packets recorded until ${clock(end, network.duration_s)}`, tail + 6, middle + 4);
    return;
  }

  const queued = waiting(log, now, linkSample(current, "queue_packets", now));
  const packetTime = log.packetTime(now);
  const slot = Math.max(1, Math.min(14, (head - tail) / Math.max(queued.length, 1)));
  const speedPx = 14 / packetTime; // a packet moves by one slot while another one is sent
  const size = (index: number) => Math.max(3, Math.min(12, ((log.bytes[index] as number) / 1500) * 12));
  const box = (index: number, x: number, y: number, most: number, alpha = 1) => {
    context.globalAlpha = alpha;
    context.fillStyle = flowColour(network, current.groupOf(log.flow[index] as number));
    const height = size(index);
    context.fillRect(x, y - height / 2, Math.max(1, Math.min(most - 1, 11)), height);
    if (log.marked[index]) {
      context.strokeStyle = ink.mark;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - height / 2 - 2, Math.min(most, 12) + 1, height + 4);
      context.lineWidth = 1;
    }
    context.globalAlpha = 1;
  };
  queued.forEach((index, i) => {
    box(index, head - (i + 1) * slot, middle, slot);
  });
  // Packets in transmission and behind the queue.
  for (let i = log.after(now) - 1, seen = 0; i >= 0 && seen < 600; i--, seen++) {
    const began = log.began(i);
    if (log.fate[i] !== Fate.Through || began > now) continue;
    const x = head + (now - began) * speedPx;
    if (x < width) box(i, x, middle, 14);
  }
  // Packets that arrive next, and dropped packets, which fall for a short time.
  const ahead = tail / speedPx;
  for (let i = log.after(now); i < log.arrived.length && (log.arrived[i] as number) < now + ahead; i++) {
    box(i, tail - 12 - ((log.arrived[i] as number) - now) * speedPx, middle, 14);
  }
  const falling = 8 * packetTime;
  let drops = 0;
  for (let i = log.after(now) - 1; i >= 0 && (log.arrived[i] as number) > now - falling; i--) {
    if (log.fate[i] !== Fate.Gone) continue;
    const age = (now - (log.arrived[i] as number)) / falling;
    const y = middle + 16 + age * 18;
    const x = tail - 8 + drops * 3;
    drops += 1;
    box(i, x, y, 14, 1 - age * 0.6);
    context.strokeStyle = ink.drop;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x - 1, y - 6);
    context.lineTo(x + 12, y + 6);
    context.moveTo(x + 12, y - 6);
    context.lineTo(x - 1, y + 6);
    context.stroke();
    context.lineWidth = 1;
  }
}
