// Draws dashboards with Grafana's components in a headless Chromium, on data of a Prometheus:
//   node draw.mjs FOLDER PROMETHEUS SYSTEM FROM TO DASHBOARD.json...
// Every panel must have data and something drawn in it, and the page no error; pictures go to FOLDER.
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const [folder, prometheus, system, from, to, ...files] = process.argv.slice(2);
const asked = { prometheus, system, from: Math.floor(from), to: Math.ceil(to), step: 1 };
mkdirSync(folder, { recursive: true });
const script = join(folder, "page.js");
await build({
  entryPoints: [join(here, "page.tsx")], bundle: true, outfile: script, format: "iife", jsx: "automatic", logLevel: "error",
  define: { "process.env.NODE_ENV": '"production"', global: "window" }, minify: true,
  loader: { ".svg": "text", ".woff": "dataurl", ".woff2": "dataurl", ".ttf": "dataurl", ".png": "dataurl" },
});
const html = '<!doctype html><html><head><meta charset="utf-8"><link rel="stylesheet" href="page.css"></head><body><script src="page.js"></script></body></html>';
const served = {
  "/": ["text/html", html],
  "/page.js": ["text/javascript", readFileSync(script)],
  "/page.css": ["text/css", readFileSync(join(folder, "page.css"))],
};
const server = createServer((request, answer) => {
  const [kind, text] = served[request.url] ?? ["text/plain", ""];
  answer.writeHead(200, { "content-type": kind }).end(text);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const faults = [];
for (const file of files) {
  const name = basename(file, ".json");
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.on("pageerror", (error) => faults.push(`${name}: ${error.message}`));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.draw);
  const silent = await page.evaluate(([dashboard, asked]) => window.draw(dashboard, asked), [JSON.parse(readFileSync(file, "utf8")), asked]);
  faults.push(...silent.map((title) => `${name}: no data in '${title}'`));
  await page.waitForTimeout(1500);
  const empty = await page.$$eval(".panel", (panels) =>
    panels.filter((panel) => !panel.querySelector({ timeseries: "canvas", stat: "span", "state-timeline": ".band", table: "[role=gridcell]" }[panel.dataset.kind]))
      .map((panel) => panel.dataset.title));
  faults.push(...empty.map((title) => `${name}: nothing is drawn in '${title}'`));
  const count = await page.$$eval(".panel", (panels) => panels.length);
  await (await page.$("#page")).screenshot({ path: join(folder, `${name}.png`) });
  console.log(`${name}: ${count} panels drawn`);
  await page.close();
}
await browser.close();
server.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length ? 1 : 0);
