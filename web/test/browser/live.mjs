// SPDX-License-Identifier: Apache-2.0
// A recording that goes on: it grows by itself, a chosen window stays, "follow" moves it along, and its end is said.
import { ask, Browser, check } from "./browser.mjs";

const readout = (page) => page.locator(".readout").textContent();

export default async function live(url) {
  const browser = await Browser.start(url);
  const { page } = browser;
  await browser.sees("1 recording goes on", "main h1");
  await page.locator("main article h2 a").click();
  await page.locator(".gpu").first().waitFor();
  await browser.sees("goes on", "main .facts");

  const grows = (from) =>
    page.waitForFunction((before) => document.querySelector(".readout").textContent !== before, from, {
      timeout: 30_000,
    });
  await grows(await readout(page));

  // A chosen window stays, while more comes.
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.waitForFunction(() => location.hash.includes("begin="));
  const chosen = await readout(page);
  const long = () => page.locator("main .facts > span").nth(2).textContent();
  const before = await long();
  await page.waitForFunction((was) => document.querySelectorAll("main .facts > span")[2].textContent !== was, before, {
    timeout: 30_000,
  });
  check((await readout(page)) === chosen, `the window stays: ${chosen} and ${await readout(page)}`);

  await page.getByLabel("follow the end").check();
  await grows(chosen);
  await page.waitForFunction(() => !location.hash.includes("begin=")); // an address cannot hold what moves

  // A page that nobody sees lets go of its connection, and is as new when somebody looks again.
  const seen = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await seen(true);
  await page.waitForTimeout(1500); // what was on its way
  let asked = 0;
  const count = () => ++asked;
  page.on("request", count);
  await page.waitForTimeout(2500);
  check(asked === 0, `${asked} requests of a page that nobody sees`);
  page.off("request", count);
  const left = await readout(page);
  await seen(false);
  await grows(left);

  await ask("end the job");
  await browser.sees("ended", "main .facts");
  check((await page.locator("nav #live").count()) === 0, "it has left the live ones");
  await browser.end();
}
