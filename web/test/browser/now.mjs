// SPDX-License-Identifier: Apache-2.0
// What stands at this moment is said beside its recording, and goes when that is over.
import { ask, Browser, check } from "./browser.mjs";

export default async function now(url) {
  const browser = await Browser.start(url);
  const { page } = browser;
  const lost = "Now: The driver lost ";
  await browser.sees(lost, "main article .now[role=status]");
  await page.locator("main article h2 a").click();
  await page.locator(".gpu").first().waitFor();
  await browser.sees(lost, "main .now[role=status]");
  const said = await page.locator("main .now").textContent();
  check(/, since \d\d:\d\d$/.test(said), said);
  await ask("end the job");
  await browser.sees("ended", "main .facts");
  check((await page.locator("main .now").textContent()) === "", "it is over");
  await browser.end();
}
