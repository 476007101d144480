// SPDX-License-Identifier: Apache-2.0
// Another server has another token: the page says what to do, and goes on saying it.
import { ask, Browser } from "./browser.mjs";

export default async function refused(url) {
  const browser = await Browser.start(url);
  await browser.sees("connected", "header");
  browser.expected = /net::ERR|Failed to load resource|EventSource/;
  await ask("another server, with another token");
  await browser.sees("open the address that headroom serve printed", '[role="alert"]');
  await browser.end();
}
