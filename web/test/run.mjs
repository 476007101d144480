// SPDX-License-Identifier: Apache-2.0
// Bundles the tests of what is no page, and runs them.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSync } from "esbuild";

const folder = mkdtempSync(join(tmpdir(), "headroom-web-"));
try {
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  buildSync({
    entryPoints: tests.map((name) => `test/${name}`),
    bundle: true,
    platform: "node",
    format: "esm",
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
  });
  const files = tests.map((name) => join(folder, name.replace(".ts", ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true });
}
