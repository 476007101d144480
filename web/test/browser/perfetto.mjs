// SPDX-License-Identifier: Apache-2.0
// The trace is handed to Perfetto's window by message. Perfetto itself is played here: no test asks another site.
import { Browser, check } from "./browser.mjs";

const perfetto = `<!doctype html><title>played</title><script>
addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin);
  else document.title = event.data.perfetto.title + " " + JSON.stringify(JSON.parse(new TextDecoder().decode(event.data.perfetto.buffer))).slice(0, 20);
});
</script>`;

export default async function handOver(url) {
  const browser = await Browser.start(url);
  browser.allowed = /^https:\/\/ui\.perfetto\.dev$/;
  await browser.context.route("https://ui.perfetto.dev/**", (route) =>
    route.fulfill({ contentType: "text/html", body: perfetto }),
  );
  await browser.page.locator("nav a", { hasText: process.env.LABEL }).first().click();
  await browser.page.getByRole("button", { name: "Open in Perfetto" }).waitFor();
  const opened = browser.context.waitForEvent("page");
  await browser.page.getByRole("button", { name: "Open in Perfetto" }).click();
  const other = await opened;
  await other.waitForFunction(() => document.title !== "played" && document.title !== "");
  const title = await other.title();
  check(title.includes("{") && title.includes(process.env.LABEL), `the trace came: ${title}`);
  await browser.end();
}
