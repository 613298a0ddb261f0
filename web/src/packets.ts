/**
 * The packets at the watched link, with the time at which each left the queue.
 *
 * The engine reports when a packet reaches the queue and when it reaches the end of the link. A packet that a later
 * packet of its flow overtakes did not come through: the queue dropped it, or the link lost it. Within a flow, queues
 * keep the order of packets.
 */

import type { Columns } from "./protocol";

/** What became of a packet. */
export enum Fate {
  Waiting = 0,
  Through = 1,
  Gone = 2,
}

export class PacketLog {
  /** Time at which the packet reached the queue, in s. Ascending. */
  readonly arrived: number[] = [];
  /** Time at which the last bit left the queue, in s; NaN for packets that did not come through. */
  readonly left: number[] = [];
  readonly flow: number[] = [];
  readonly bytes: number[] = [];
  readonly fate: Fate[] = [];
  readonly marked: boolean[] = [];
  /** Per flow, the indexes of packets without a fate, and the position of the first of them. */
  private readonly open = new Map<number, { queue: number[]; head: number }>();
  private readonly seq: number[] = [];
  private delay = 0;
  private rateAt: (time: number) => number = () => Number.NaN;

  configure(delay: number, rateAt: (time: number) => number): void {
    this.delay = delay;
    this.rateAt = rateAt;
  }

  take(columns: Columns): void {
    const { t_s, through, flow, seq, bytes, marked } = columns as Record<string, Float64Array>;
    if (!t_s || !through || !flow || !seq || !bytes || !marked) return;
    for (let i = 0; i < t_s.length; i++) {
      const [at, id, number] = [t_s[i] as number, flow[i] as number, seq[i] as number];
      if (through[i] === 0) this.arrive(at, id, number, bytes[i] as number);
      else this.pass(at, id, number, marked[i] === 1);
    }
  }

  private arrive(at: number, flow: number, seq: number, bytes: number): void {
    const index = this.arrived.length;
    this.arrived.push(at);
    this.left.push(Number.NaN);
    this.flow.push(flow);
    this.seq.push(seq);
    this.bytes.push(bytes);
    this.fate.push(Fate.Waiting);
    this.marked.push(false);
    let open = this.open.get(flow);
    if (open === undefined) {
      open = { queue: [], head: 0 };
      this.open.set(flow, open);
    }
    open.queue.push(index);
  }

  private pass(at: number, flow: number, seq: number, marked: boolean): void {
    const open = this.open.get(flow);
    if (open === undefined) return;
    let found = open.head;
    while (found < open.queue.length && this.seq[open.queue[found] as number] !== seq) found++;
    if (found === open.queue.length) return; // a duplicate that the link made
    for (let i = open.head; i < found; i++) this.fate[open.queue[i] as number] = Fate.Gone;
    const index = open.queue[found] as number;
    this.fate[index] = Fate.Through;
    this.left[index] = Math.max(at - this.delay, this.arrived[index] as number);
    this.marked[index] = marked;
    open.head = found + 1;
    if (open.head > 1024) {
      open.queue.splice(0, open.head);
      open.head = 0;
    }
  }

  /** Time at which the packet began to leave the queue. */
  began(index: number): number {
    const left = this.left[index] as number;
    return left - ((this.bytes[index] as number) * 8) / this.rateAt(left);
  }

  /** Time for which a full packet occupies the link. */
  packetTime(time: number): number {
    return (1500 * 8) / this.rateAt(time);
  }

  /** Index of the first packet that arrived after this time. */
  after(time: number): number {
    let [low, high] = [0, this.arrived.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.arrived[middle] as number) <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
