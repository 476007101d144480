// SPDX-License-Identifier: Apache-2.0
// A real browser for tests/e2e/test_dashboard.py: what it logs, refuses or asks of others is a fault of the page.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const checks = readFileSync(new URL("../../../tests/e2e/browser_checks.js", import.meta.url), "utf8");
// What holds for a report, which is one file, and not for a page that is served.
const ofReports = ["a link to nothing", "something that loads or runs"];

export function check(claim, words) {
  if (!claim) throw new Error(words);
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Says to pytest that it is its turn, and waits until that is done; what it answers. */
export async function ask(words) {
  console.log(words);
  const { value } = await lines.next();
  return value;
}

export class Browser {
  static async start(url, options = {}) {
    const browser = new Browser();
    browser.faults = [];
    browser.origin = new URL(url).origin;
    browser.own = await chromium.launch({
      executablePath: process.env.CHROMIUM,
      args: ["--no-sandbox", "--disable-gpu"],
    });
    browser.context = await browser.own.newContext({ viewport: { width: 1400, height: 900 }, ...options });
    await browser.context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) =>
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
      );
    });
    browser.page = await browser.context.newPage();
    browser.listen(browser.page);
    await browser.page.goto(url);
    return browser;
  }

  /** Faults are kept; where the server is gone on purpose, `expected` says what may fail. */
  listen(page) {
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()) && !this.expected?.test(message.text()))
        this.faults.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.faults.push(`error: ${error}`));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith("http") && url.origin !== this.origin && !this.allowed?.test(url.origin))
        this.faults.push(`request to ${url.origin}`);
    });
  }

  async go(hash) {
    await this.page.evaluate((to) => {
      location.hash = to;
    }, hash);
  }

  /** The first element with this text. */
  text(words, selector = "body") {
    return this.page.locator(selector, { hasText: words }).first();
  }

  async sees(words, selector = "body") {
    await this.text(words, selector).waitFor({ timeout: 60_000 });
  }

  /** Opens everything that can be opened, what appears by that, too. */
  async openAll() {
    await this.page.evaluate(async () => {
      const drawn = () => new Promise((done) => requestAnimationFrame(done));
      const closed = () => document.querySelector("main details:not([open]) > summary");
      for (let one = closed(); one; one = closed()) {
        one.click();
        await drawn();
      }
    });
  }

  async problems() {
    const found = await this.page.evaluate(`${checks}; problemsOf(window)`);
    return found.filter((one) => !ofReports.some((start) => one.startsWith(start)));
  }

  async end() {
    await this.own.close();
    check(this.faults.length === 0, this.faults.join("\n"));
  }
}
