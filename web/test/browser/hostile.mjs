// SPDX-License-Identifier: Apache-2.0
// Names of tasks, commands and recordings that are markup stay text, wherever they are shown.
import { Browser, check } from "./browser.mjs";

export default async function hostile(url) {
  const browser = await Browser.start(url);
  const { page } = browser;
  page.on("dialog", () => browser.faults.push("a dialog was opened"));
  const seen = [];
  for (const hash of JSON.parse(process.env.PAGES)) {
    await browser.go(hash);
    await page.locator("main h1").waitFor();
    await page.waitForFunction(() => !document.querySelector("main").textContent.includes(" …"));
    await browser.openAll();
    const strange = await page.evaluate(() =>
      [
        ...document.querySelectorAll(
          "img, iframe, object, embed, base, form, style, script:not([src='/app.js']), [onerror], [onload], [onclick]",
        ),
      ].map((one) => one.outerHTML),
    );
    check(strange.length === 0, `${hash}: ${strange}`);
    const text = await page.evaluate(() => document.body.textContent);
    check(!/[\u202a-\u202e\u2066-\u2069\u200b]/.test(text), `${hash}: letters that reorder others`);
    if (text.includes("<script>alert(1)")) seen.push(hash);
    check(!(await page.title()).includes("alert"), "the title is ours");
  }
  check(seen.length === JSON.parse(process.env.PAGES).length, `shown as text in ${seen}`);
  await browser.end();
}
