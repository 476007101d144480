// SPDX-License-Identifier: Apache-2.0
// What is wrong with a report in a browser, as a list of sentences: width, names, order, contrast.
function problemsOf(window) {
  const document = window.document, problems = [];
  const say = (what, element) => problems.push(what + ": " + (element ? element.outerHTML.slice(0, 120) : ""));
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    say(`wider than the page (${root.scrollWidth} > ${root.clientWidth})`);
    for (const e of document.querySelectorAll("body *"))
      if (e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".scroll, pre, .skip, svg")) say("too wide", e);
  }
  if (!root.lang) say("no language");
  if (!document.title) say("no title");
  for (const name of ["header", "nav", "main", "footer", "h1"])
    if (document.querySelectorAll(name).length !== 1) say(`not one <${name}>`);
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) say("a heading skips a level", heading);
    level = own;
  }
  for (const svg of document.querySelectorAll("svg"))
    if (!(svg.querySelector(":scope > title") || {}).textContent || svg.getAttribute("role") !== "img") say("a drawing without name", svg);
  for (const table of document.querySelectorAll("table")) {
    if (!(table.caption || {}).textContent) say("a table without caption", table);
    if (!table.querySelector("thead th[scope=col]")) say("a table without header", table);
    for (const row of table.querySelectorAll("tbody tr"))
      if (row.querySelectorAll("th[scope=row]").length !== 1) say("a row without header", row);
  }
  for (const section of document.querySelectorAll("section"))
    if (!document.getElementById(section.getAttribute("aria-labelledby"))) say("a section without name", section);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) say("an id twice");
  for (const link of document.querySelectorAll("a"))
    if (!link.hash || !document.getElementById(link.hash.slice(1))) say("a link to nothing", link);
  if (document.scripts.length || document.querySelector("iframe, object, embed, img, link, form, [onclick], [onload], [onerror]"))
    say("something that loads or runs");
  return problems.concat(contrastProblems(window));
}

function contrastProblems(window) {
  const document = window.document, problems = new Set();
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(window.getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, window.NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("svg")) continue;
    const a = light(parse(window.getComputedStyle(element).color)), b = light(ground(element));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) problems.add(`contrast ${contrast.toFixed(1)} of <${element.tagName}> ${element.className}`);
  }
  return [...problems];
}
