// SPDX-License-Identifier: Apache-2.0
// The flame graph: of the window that is shown, by mouse and by keyboard; without stacks it says why there is none.
import { Browser, check } from "./browser.mjs";

const tip = (page) => page.locator(".flames .tip").textContent();

export default async function flames(url, folder) {
  const browser = await Browser.start(url);
  const { page } = browser;
  await page.locator("nav a").first().click();
  await page.locator("summary", { hasText: "Flame graph" }).click();
  const graph = page.locator(".flames");
  await graph.locator("g").first().waitFor();

  await graph.locator("g", { hasText: "Queue.wait_for" }).first().hover();
  check(/Queue\.wait_for \(.*witness\.py:\d+\): .* of the time shown$/.test(await tip(page)), await tip(page));
  const all = await graph.locator("g").count();
  await graph.locator("g", { hasText: "Queue.wait_for" }).first().click();
  await page.getByRole("button", { name: "All frames" }).waitFor();
  const alone = await graph.locator("g").count();
  check(alone < all, `${alone} of ${all} frames`);
  const widths = await graph.locator("g").evaluateAll((ones) => ones.slice(0, 3).map((one) => one.getBoundingClientRect().width));
  check(new Set(widths.map(Math.round)).size === 1, `it and what called it are as wide as all: ${widths}`);

  await page.mouse.move(2, 2);
  await graph.focus();
  await page.keyboard.press("Escape");
  check((await graph.locator("g").count()) >= alone, "what called it");
  await page.getByRole("button", { name: "All frames" }).click();
  await graph.focus();
  await page.keyboard.press("ArrowDown");
  check((await tip(page)).startsWith("<module> "), await tip(page));
  await page.keyboard.press("ArrowDown");
  check((await tip(page)).startsWith("main "), await tip(page));

  const time = () => graph.locator("xpath=following-sibling::p").textContent();
  const idle = await time();
  await page.getByLabel("also while kernels ran").check();
  await page.waitForFunction((before) => document.querySelector(".flames + p").textContent !== before, idle);
  await page.locator("section:has(#findings)").screenshot({ path: `${folder}/flames.png` });
  for (const problem of await browser.problems()) check(false, problem);

  // Another window has other stacks, and keeps the graph open.
  const busy = await time();
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.waitForFunction((before) => document.querySelector(".flames + p").textContent !== before, busy);

  await page.locator("nav a").nth(1).click();
  await page.locator("summary", { hasText: "Flame graph" }).click();
  await browser.sees("There are no Python stacks of this time: they were not recorded.", "main");
  await browser.end();
}
