// SPDX-License-Identifier: Apache-2.0
// The server goes and comes: the page says so, and shows what has changed meanwhile.
import { ask, Browser, check } from "./browser.mjs";

export default async function reconnect(url) {
  const browser = await Browser.start(url);
  const { page } = browser;
  await browser.sees("connected", "header");
  const before = await page.locator("nav a").count();
  await page.locator("nav a", { hasText: process.env.LABEL }).first().click();
  await page.locator(".gpu").first().waitFor();
  browser.expected = /net::ERR|Failed to load resource|EventSource/; // the browser logs that nobody answers
  await ask("stop the server");
  await browser.sees("connection to headroom serve is lost", "header");
  check(await page.locator(".gpu").first().isVisible(), "what was read stays");
  await ask("start the server, with one recording more");
  await browser.sees("connected", "header");
  await page.waitForFunction((count) => document.querySelectorAll("nav a").length > count, before);
  await browser.end();
}
