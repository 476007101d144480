// SPDX-License-Identifier: Apache-2.0
// A part of a recording: brushed, explained, saved as one file, and that read without a network.
import { pathToFileURL } from "node:url";
import { Browser, check } from "./browser.mjs";

export default async function window(url, folder) {
  const browser = await Browser.start(url);
  const { page } = browser;
  await page.locator("nav a").first().click();
  const strip = page.locator(".gpu .chart").first();
  await strip.waitFor();
  const save = page.locator("a", { hasText: "Save the report of this window" });
  check((await save.count()) === 0, "the whole has its own link");

  const whole = await page.locator("main h1").textContent();
  const box = await strip.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("begin="));
  await browser.sees("What cost time in the window", "#findings");
  await page.waitForFunction((before) => document.querySelector("main h1").textContent !== before, whole);
  const headline = (await page.locator("main h1").textContent()).trim();
  const cause = (await page.locator("section[aria-labelledby=findings] h3 > span").first().textContent()).trim();
  check(cause.length > 5, `a cause: ${cause}`);

  const coming = page.waitForEvent("download");
  await save.click();
  const file = await coming;
  check(/^[\w-]+\.[\d.]+s-[\d.]+s\.html$/.test(file.suggestedFilename()), file.suggestedFilename());
  await file.saveAs(`${folder}/saved.html`);

  // The other one of the list, beside this one.
  await page.locator("select").selectOption({ index: 1 });
  const opened = browser.context.waitForEvent("page");
  await page.locator("a", { hasText: "Open the comparison" }).click();
  const pair = await opened;
  await pair.locator("h1").waitFor();
  const said = await pair.locator("body").innerText();
  check(/^A: /m.test(said) && /^B: /m.test(said), `two sides: ${said.slice(0, 200)}`);
  await pair.close();

  await page.close();  // it would ask its server
  await browser.context.setOffline(true);
  const read = await browser.context.newPage();
  browser.listen(read);
  await read.goto(pathToFileURL(`${folder}/saved.html`).href);
  const text = (await read.locator("body").innerText()).replaceAll("\u00a0", " ");
  check(text.includes(headline.replaceAll("\u00a0", " ")), `the sentence of the window: ${headline}`);
  check(text.includes(cause.replace(/^\d+\w?\.\s+/, "").replaceAll("\u00a0", " ")), `its cause: ${cause}`);
  const loaded = await read.evaluate(() => performance.getEntriesByType("resource").length);
  check(loaded === 0, `one file: ${loaded}`);
  await browser.end();
}
