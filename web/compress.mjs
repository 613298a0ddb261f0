import { spawnSync } from "node:child_process";

/**
 * Compresses data as LZMA, which Node.js lacks and Python has. The header gets the size of the data, for which Python
 * writes "unknown".
 */
export function lzma(data) {
  const program = `import lzma, sys
filters = [{"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 22, "nice_len": 273}]
sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read(), format=lzma.FORMAT_ALONE, filters=filters))`;
  const python = process.env.PYTHON ?? "python3";
  const { status, stdout, stderr } = spawnSync(python, ["-c", program], { input: data, maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${python} failed: ${stderr}`);
  stdout.writeBigUInt64LE(BigInt(data.length), 5);
  return stdout;
}
