// SPDX-License-Identifier: Apache-2.0
// Every page at every width, light and dark: pictures for people, and what a machine can say of them.
import { Browser, check } from "./browser.mjs";

export default async function look(url, folder) {
  const browser = await Browser.start(url);
  const { page } = browser;
  browser.expected = /status of 422/; // of what cannot be read, which the page says
  await page.locator("h1").waitFor();
  const pages = JSON.parse(process.env.PAGES ?? '["#/"]');
  const pictures = process.env.PICTURES;
  const said = [];
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const width of scheme === "light" ? [1400, 800, 360, 320] : [1400, 360]) {
      await page.setViewportSize({ width, height: 900 });
      for (const [i, hash] of pages.entries()) {
        await browser.go(hash);
        await page.locator("main h1").waitFor();
        await page.waitForFunction(() => !document.querySelector("main").textContent.includes(" …"));
        await browser.openAll();
        await page.evaluate(() => scrollTo(0, 0));
        await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))); // as charts are
        if (pictures === "all" || (scheme === "light" && width === 1400))
          await page.screenshot({ path: `${folder}/${i}-${width}-${scheme}.png`, fullPage: true });
        for (const problem of await browser.problems()) said.push(`${hash} at ${width} px, ${scheme}: ${problem}`);
      }
    }
  }
  check(said.length === 0, [...new Set(said)].join("\n"));
  await browser.end();
}
