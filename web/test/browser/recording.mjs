// SPDX-License-Identifier: Apache-2.0
// A recording: read, zoom, move, go back, tables, bands, a reload in the middle.
import { Browser, check } from "./browser.mjs";

const windowOf = (page) =>
  page.evaluate(() => {
    const fields = new URLSearchParams(location.hash.split("?")[1] ?? "");
    return fields.has("begin") ? [Number(fields.get("begin")), Number(fields.get("end"))] : null;
  });

export default async function recording(url) {
  const browser = await Browser.start(url);
  const { page } = browser;
  await page.locator("nav a", { hasText: process.env.LABEL }).first().click();
  const strip = page.locator(".gpu .chart").first();
  await strip.waitFor();
  const readout = page.locator(".readout");

  // The cursor is the same in all charts, and a sentence says what is under it.
  const box = await strip.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 10);
  await browser.sees("GPU 0: ", ".readout");
  const left = await page.locator(".u-cursor-x").evaluateAll((all) => all.map((one) => one.style.transform));
  check(left.length >= 2 && new Set(left.map((one) => one.split(",")[0])).size === 1, `one cursor: ${left}`);
  check((await readout.getAttribute("aria-live")) === "polite", "is told to screen readers");

  // Drag to zoom; the address knows the window; Esc goes back.
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("begin="));
  const zoomed = await windowOf(page);
  check(zoomed[1] - zoomed[0] > 0, `a window: ${zoomed}`);

  // A reload in the middle shows the same, and no other window for an instant.
  await page.addInitScript(() => {
    const own = history.replaceState;
    globalThis.addresses = [];
    history.replaceState = (...words) => {
      globalThis.addresses.push(words[2]);
      own.apply(history, words);
    };
  });
  await page.reload();
  await strip.waitFor();
  await page.locator("#findings").waitFor();
  const written = await page.evaluate(() => globalThis.addresses);
  check(written.length === 0, `reload leaves the address: ${written}`);
  const again = await windowOf(page);
  check(String(again) === String(zoomed), `reload keeps the window: ${again} and ${zoomed}`);

  // By keyboard alone.
  await strip.focus();
  await page.keyboard.press("Home");
  const first = await readout.textContent();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  check(first !== (await readout.textContent()), `arrows move the cursor: ${first}`);
  await page.keyboard.press("w");
  await page.waitForFunction((before) => !location.hash.includes(`end=${before}`), zoomed[1]);
  const closer = await windowOf(page);
  check(closer[1] - closer[0] < zoomed[1] - zoomed[0], "W zooms in");
  await page.keyboard.press("d");
  await page.waitForFunction((before) => !location.hash.includes(`begin=${before}`), closer[0]);
  check((await windowOf(page))[0] > closer[0], "D moves on");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("begin="));

  // What the charts show as tables, sums included.
  await page.locator(".gpu details.twin > summary").first().click();
  await page.locator(".gpu details.twin tbody tr").first().waitFor();
  const rows = await page.locator(".gpu details.twin").first().locator("tbody tr").count();
  check(rows > 1, "the table twin has rows");
  // At one moment: the view of the whole may still come, and have more accounts.
  const shares = await page.evaluate(() => {
    const row = document.querySelector(".gpu details.twin tbody tr");
    return [...row.querySelectorAll("td")].map((cell) => cell.textContent);
  });
  const sum = shares.reduce((all, one) => all + (one.startsWith("<") ? 0 : parseFloat(one)), 0);
  check(Math.abs(sum - 100) < 1, `a row sums to 100 %: ${shares}`);

  const band = page.locator(".bands button").first();
  if (await band.count()) {
    await band.click();
    check((await band.getAttribute("aria-pressed")) === "true", "a band can be shown");
    await band.click();
    check((await band.getAttribute("aria-pressed")) === "false", "and hidden");
  }
  await page.locator("main h1").waitFor();
  check(
    (await page.locator("#findings").count()) === 1 && (await page.locator("#options").count()) === 1,
    "findings and options",
  );
  await browser.end();
}
