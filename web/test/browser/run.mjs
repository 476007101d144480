// SPDX-License-Identifier: Apache-2.0
// node run.mjs SCENARIO URL FOLDER: one scenario of this folder, on a page; exit 1 and the reason on standard error.
const [scenario, url, folder] = process.argv.slice(2);
try {
  const { default: play } = await import(`./${scenario}.mjs`);
  await play(url, folder);
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
