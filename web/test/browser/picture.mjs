// SPDX-License-Identifier: Apache-2.0
// What somebody sees who opens a page of the dashboard, as a picture.
import { Browser } from "./browser.mjs";

export default async function picture(url, folder) {
  const browser = await Browser.start(url, { viewport: { width: 1100, height: 700 } });
  const { page } = browser;
  await page.locator("h1").waitFor();
  await browser.go(process.env.HASH);
  await page.locator("main h1").waitFor();
  await page.waitForFunction(() => !document.querySelector("main").textContent.includes(" …"));
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))); // as charts are
  await page.screenshot({ path: `${folder}/dashboard.png` });
  await browser.end();
}
