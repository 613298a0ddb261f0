/**
 * Writes tables as Parquet (https://parquet.apache.org/docs/file-format/): one row group, one page per column, plain
 * values without nulls. The browser compresses the pages.
 *
 * The tables need only this small part of the format. A library would enlarge the page, which is one file.
 */

/** Types as in the tables of `narrows run`. */
export type Kind = "float" | "u8" | "u32" | "u64" | "str";

export interface Column {
  name: string;
  kind: Kind;
  values: ArrayLike<number | string>;
}

/** The numbers of the format: physical type, and "converted type" (the meaning of the values). */
const TYPES: Record<Kind, { physical: number; converted?: number }> = {
  float: { physical: 5 },
  u8: { physical: 1, converted: 11 },
  u32: { physical: 1, converted: 13 },
  u64: { physical: 2, converted: 14 },
  str: { physical: 6, converted: 0 },
};
const [PLAIN, RLE, GZIP, DATA_PAGE, REQUIRED] = [0, 3, 2, 0, 0];

export async function parquet(columns: Column[], creator: string): Promise<Uint8Array<ArrayBuffer>> {
  const rows = columns[0]?.values.length ?? 0;
  const magic = new TextEncoder().encode("PAR1");
  const parts: Uint8Array[] = [magic];
  let offset = magic.length;
  const chunks: Fields[] = [];
  let total = 0;
  for (const { name, kind, values } of columns) {
    const plain = encode(kind, values);
    const page = await gzip(plain);
    const header = new Thrift().struct([
      [1, i32(DATA_PAGE)],
      [2, i32(plain.length)],
      [3, i32(page.length)],
      [
        5,
        struct([
          [1, i32(rows)],
          [2, i32(PLAIN)],
          [3, i32(RLE)],
          [4, i32(RLE)],
        ]),
      ],
    ]).bytes;
    const [before, after] = [header.length + plain.length, header.length + page.length];
    chunks.push([
      [2, i64(offset)],
      [
        3,
        struct([
          [1, i32(TYPES[kind].physical)],
          [2, list(I32, [i32(PLAIN)])],
          [3, list(BINARY, [text(name)])],
          [4, i32(GZIP)],
          [5, i64(rows)],
          [6, i64(before)],
          [7, i64(after)],
          [9, i64(offset)],
        ]),
      ],
    ]);
    parts.push(Uint8Array.from(header), page);
    offset += after;
    total += before;
  }
  const root: Fields = [
    [4, text("schema")],
    [5, i32(columns.length)],
  ];
  const schema = columns.map(({ name, kind }): Fields => {
    const { physical, converted } = TYPES[kind];
    const fields: Fields = [
      [1, i32(physical)],
      [3, i32(REQUIRED)],
      [4, text(name)],
    ];
    return converted === undefined ? fields : [...fields, [6, i32(converted)]];
  });
  const group: Fields = [
    [1, list(STRUCT, chunks.map(struct))],
    [2, i64(total)],
    [3, i64(rows)],
  ];
  const footer = new Thrift().struct([
    [1, i32(1)],
    [2, list(STRUCT, [root, ...schema].map(struct))],
    [3, i64(rows)],
    [4, list(STRUCT, [struct(group)])],
    [6, text(creator)],
  ]).bytes;
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, footer.length, true);
  parts.push(Uint8Array.from(footer), length, magic);
  return joined(parts);
}

/** Values in the encoding PLAIN: little-endian numbers, and texts with their length in front. */
function encode(kind: Kind, values: ArrayLike<number | string>): Uint8Array<ArrayBuffer> {
  if (kind === "str") {
    const encoder = new TextEncoder();
    const parts: Uint8Array[] = [];
    for (let i = 0; i < values.length; i++) {
      const bytes = encoder.encode(String(values[i]));
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, bytes.length, true);
      parts.push(length, bytes);
    }
    return joined(parts);
  }
  const width = TYPES[kind].physical === 1 ? 4 : 8;
  const bytes = new Uint8Array(values.length * width);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < values.length; i++) {
    const value = Number(values[i]);
    if (kind === "float") view.setFloat64(i * 8, value, true);
    else if (kind === "u64") view.setBigUint64(i * 8, BigInt(Math.trunc(value)), true);
    else view.setUint32(i * 4, value, true);
  }
  return bytes;
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

/** Types of Thrift's compact protocol, in which Parquet writes its metadata. */
const [I32, I64, BINARY, LIST, STRUCT] = [5, 6, 8, 9, 12];

type Value = { type: number; write(to: Thrift): void };
type Fields = [id: number, value: Value][];

const i32 = (value: number): Value => ({ type: I32, write: (to) => to.whole(value) });
const i64 = (value: number): Value => ({ type: I64, write: (to) => to.whole(value) });
const text = (value: string): Value => ({ type: BINARY, write: (to) => to.binary(value) });
const struct = (fields: Fields): Value => ({ type: STRUCT, write: (to) => to.struct(fields) });
const list = (type: number, values: Value[]): Value => ({ type: LIST, write: (to) => to.list(type, values) });

class Thrift {
  readonly bytes: number[] = [];

  /** Fields in ascending order of their numbers. Each has its type and the difference to the previous number. */
  struct(fields: Fields): this {
    let last = 0;
    for (const [id, value] of fields) {
      this.bytes.push(((id - last) << 4) | value.type);
      value.write(this);
      last = id;
    }
    this.bytes.push(0);
    return this;
  }

  list(type: number, values: Value[]): void {
    if (values.length < 15) this.bytes.push((values.length << 4) | type);
    else {
      this.bytes.push(0xf0 | type);
      this.varint(values.length);
    }
    for (const value of values) value.write(this);
  }

  /** An integer in zigzag encoding. Only non-negative numbers are needed. */
  whole(value: number): void {
    this.varint(value * 2);
  }

  binary(value: string): void {
    const bytes = new TextEncoder().encode(value);
    this.varint(bytes.length);
    for (const byte of bytes) this.bytes.push(byte);
  }

  private varint(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.bytes.push((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    this.bytes.push(rest);
  }
}
