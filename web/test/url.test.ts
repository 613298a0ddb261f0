import assert from "node:assert/strict";
import { test } from "node:test";
import { PRESETS } from "../src/presets";
import { fromFragment, toFragment } from "../src/url";

test("a scenario survives the way through an address", async () => {
  for (const text of ["", '# ä → €\nduration = "1s"\n', ...PRESETS.map(({ toml }) => toml)]) {
    const fragment = await toFragment(text);
    assert.match(fragment, /^#s=[\w-]*$/);
    assert.equal(await fromFragment(fragment), text);
  }
});

test("other fragments and damaged ones are ignored", async () => {
  const fragment = await toFragment(PRESETS[0]?.toml ?? "");
  for (const bad of ["", "#", "#figures", "#s=!", `${fragment.slice(0, 20)}`, "#s=AAAA"]) {
    assert.equal(await fromFragment(bad), null);
  }
});
