// Build the script and the style of the page into the package: the same sources make the same bytes.
import { build } from "esbuild";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? `${here}../msprobe_ms/page`;

// Every page is a copy of Preact, so every page has its licence.
const licence = (await readFile(`${here}node_modules/preact/LICENSE`, "utf8")).trim();

const common = {
  absWorkingDir: here,
  outdir: out,
  bundle: true,
  minify: true,
  charset: "ascii",
  legalComments: "none",
  target: ["chrome103", "firefox113", "safari16.4"],
  logLevel: "warning",
};
const script = { ...common, format: "iife", tsconfig: "tsconfig.json" };

await build({
  ...script,
  banner: { js: `/*! This script contains Preact.\n${licence} */` },
  entryPoints: { report: "src/main.tsx" },
});
await build({ ...script, entryPoints: { check: "src/check.ts" } });
await build({ ...common, entryPoints: { report: "src/report.css", check: "src/check.css" } });
for (const name of ["report.js", "report.css", "check.js", "check.css"]) {
  if (/<\/(script|style)|<!--/i.test(await readFile(`${out}/${name}`, "utf8"))) throw new Error(`${name} would end its element`);
}
