import assert from "node:assert/strict";
import { test } from "node:test";
import { PRESETS } from "../src/presets";
import { fromFragment, holdsScenario, MOST_BYTES, toFragment } from "../src/url";

test("a scenario survives the way through an address", async () => {
  for (const text of ["", '# ä → €\nduration = "1s"\n', ...PRESETS.map(({ toml }) => toml)]) {
    const fragment = await toFragment(text);
    assert.match(fragment, /^#s=[\w-]*$/);
    assert.equal(await fromFragment(fragment), text);
  }
});

test("a text that is too long is refused", async () => {
  assert.equal((await fromFragment(await toFragment("a".repeat(MOST_BYTES))))?.length, MOST_BYTES);
  assert.equal(await fromFragment(await toFragment("a".repeat(MOST_BYTES + 1))), null);
  const deflated = new Blob([new Uint8Array(50 * MOST_BYTES)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = Buffer.from(await new Response(deflated).arrayBuffer());
  assert.equal(await fromFragment(`#s=${bytes.toString("base64url")}`), null);
});

test("other fragments and damaged ones are ignored", async () => {
  const fragment = await toFragment(PRESETS[0]?.toml ?? "");
  for (const bad of ["", "#", "#figures", "#s=!", `${fragment.slice(0, 20)}`, "#s=AAAA"]) {
    assert.equal(await fromFragment(bad), null);
    assert.equal(holdsScenario(bad), bad.startsWith("#s="));
  }
});
