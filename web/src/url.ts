/** A scenario as the fragment of an address: `#s=` and its text, deflated and in base64url. */

const KEY = "s=";
/** Longest text of a scenario in bytes, as `MOST_BYTES` of narrows.playground. */
export const MOST_BYTES = 700_000;

export async function toFragment(text: string): Promise<string> {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return `#${KEY}${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Whether a fragment is meant to hold a scenario. */
export function holdsScenario(fragment: string): boolean {
  return fragment.startsWith(`#${KEY}`);
}

/** The text in a fragment, or `null` if the fragment holds none, is damaged, or holds a text that is too long. */
export async function fromFragment(fragment: string): Promise<string | null> {
  const body = fragment.replace(/^#/, "");
  if (!body.startsWith(KEY)) return null;
  try {
    const binary = atob(body.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const text = await through(bytes, new DecompressionStream("deflate-raw"));
    return text.length > MOST_BYTES ? null : new TextDecoder("utf-8", { fatal: true }).decode(text);
  } catch {
    return null;
  }
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: CompressionStream | DecompressionStream,
): Promise<Uint8Array> {
  const reader = new Blob([bytes]).stream().pipeThrough(transform).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    length += part.value.length;
    // A short fragment can decompress to gigabytes.
    if (length > 2 * MOST_BYTES) {
      void reader.cancel();
      throw new RangeError("too long");
    }
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
