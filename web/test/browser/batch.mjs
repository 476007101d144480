// SPDX-License-Identifier: Apache-2.0
// A batch as it goes: counts move by themselves, the filter keeps, a task opens, what failed comes first.
import { ask, Browser, check } from "./browser.mjs";

const counts = (page) =>
  page.evaluate(
    () =>
      [...document.querySelectorAll("main table")].find((one) => one.caption?.textContent === "Tasks")?.tBodies[0]
        ?.textContent ?? "",
  );

export default async function batch(url) {
  const browser = await Browser.start(url);
  const { page } = browser;
  await page.locator("#live").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("watched");
  check((await page.evaluate(() => document.activeElement?.type)) === "search", "/ goes to the filter");
  await page.locator('nav a[href*="batches"]').first().click();
  await page.locator(".gantt canvas").waitFor();

  // It goes on: nothing is pressed, and the numbers move.
  await page.waitForFunction(() => document.querySelectorAll("main table").length > 0);
  const first = await counts(page);
  await ask("let a task end");
  await page.waitForFunction(
    (before) => {
      const table = [...document.querySelectorAll("main table")].find((one) => one.caption?.textContent === "Tasks");
      return table && table.tBodies[0].textContent !== before;
    },
    first,
    { timeout: 60_000 },
  );

  await ask("end the batch");
  await page.waitForFunction(() => /ended/.test(document.querySelector("main .facts")?.textContent ?? ""), null, {
    timeout: 60_000,
  });
  const table = page.locator("section", { has: page.locator("#all-tasks") });
  const firstRow = await table.locator("tbody tr").first().textContent();
  check(firstRow.includes("✕"), `what failed comes first: ${firstRow}`);
  check(firstRow.includes("exit code 3"), `and why: ${firstRow}`);
  const waited = page.locator("section", { has: page.locator("#ledger") });
  check(/The GPU|GPU 0/.test(await waited.locator("p").first().textContent()), "what the GPUs did, in a sentence");
  await waited.locator("tbody tr").first().waitFor({ timeout: 60_000 }); // and where their time went
  await page.locator("section:has(#findings) article").first().waitFor({ timeout: 60_000 }); // and what cost time

  await table.locator('input[type="search"]').fill("breaks");
  await page.waitForFunction(() =>
    [...document.querySelectorAll("#all-tasks ~ * tbody tr, section:has(#all-tasks) tbody tr")].every((row) =>
      row.textContent.includes("breaks"),
    ),
  );
  const rows = await table.locator("tbody tr").count();
  check(rows >= 1, "the filter keeps what failed");
  await table.locator("tbody a").first().click();
  await browser.sees("Task breaks", "#task");
  check(page.url().includes("task=breaks"), page.url());

  // Boxes can be chosen without a mouse, and the wheel zooms once the chart has the focus.
  await page.locator("#task ~ p a, section:has(#task) a").first().click();
  const gantt = page.locator(".gantt");
  await gantt.focus();
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => /:/.test(document.querySelector(".tip").textContent));
  const width = () => page.evaluate(() => document.querySelector(".readout").textContent);
  await page.mouse.move(5, 5);
  await gantt.focus();
  const before = await width();
  // Under load one turn of the wheel was seen to be lost: a person turns again.
  for (let turn = 0; turn < 20 && (await width()) === before; ++turn) {
    await gantt.locator("canvas").hover({ position: { x: 200, y: 10 } });
    await page.mouse.wheel(0, -300);
    await page.waitForTimeout(300);
    await page.mouse.move(5, 5);
  }
  check((await width()) !== before, "the wheel zooms");

  // A reload in the middle comes back here.
  await page.reload();
  await page.locator(".gantt canvas").waitFor();
  check(page.url().includes("#/batches/"), page.url());
  await browser.end();
}
