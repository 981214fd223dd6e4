// Dashboards against Grafana's published types, by its compiler: node types.mjs FOLDER DASHBOARD.json...
// Written out as TypeScript, so that unknown keys are found too: they would pass in a file that is imported.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [folder, ...files] = process.argv.slice(2);
const KINDS = { timeseries: "TimeSeries", stat: "Stat", "state-timeline": "StateTimeline", table: "Table" };
const raw = "@grafana/schema/dist/esm/raw/composable";
const imports = Object.entries(KINDS).map(
  ([kind, name]) => `import type * as ${name} from "${raw}/${kind.replace("-", "")}/panelcfg/x/${name}PanelCfg_types.gen";`,
);
// Values of an enumeration stand as plain texts in JSON.
const PLAIN = `
import type { Dashboard, Panel, RowPanel, AnnotationQuery } from "@grafana/schema";
type Plain<T> = T extends string ? \`\${T}\` : T extends number | boolean | null | undefined ? T
  : T extends (infer E)[] ? Plain<E>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Prometheus = AnnotationQuery & { expr: string; step: string; titleFormat: string; textFormat: string; tagKeys: string };
type Page = Plain<Omit<Dashboard, "panels" | "annotations">> & { panels: unknown[]; annotations: { list: Plain<Prometheus>[] } };
type Drawn<O, C> = Plain<Omit<Panel, "options" | "fieldConfig">> & {
  options: Plain<Partial<O>>;
  fieldConfig: Plain<Omit<NonNullable<Panel["fieldConfig"]>, "defaults">> & {
    defaults: Plain<Omit<NonNullable<Panel["fieldConfig"]>["defaults"], "custom">> & { custom?: Plain<Partial<C>> };
  };
};
`;

function typed(panel) {
  if (panel.type === "row") return "Plain<RowPanel>";
  const kind = KINDS[panel.type];
  if (!kind) throw new Error(`no types for panels of kind '${panel.type}'; there are ${Object.keys(KINDS)}`);
  return `Drawn<${kind}.Options, ${kind === "Stat" ? "{}" : `${kind}.FieldConfig`}>`;
}

const parts = [...imports, PLAIN];
for (const file of files) {
  const { panels, ...page } = JSON.parse(readFileSync(file, "utf8"));
  const name = basename(file, ".json");
  parts.push(`export const ${name}: Page = ${JSON.stringify({ ...page, panels: [] }, null, 1)};`);
  for (const panel of panels) {
    parts.push(`// ${panel.title}\nexport const ${name}_${panel.id}: ${typed(panel)} = ${JSON.stringify(panel, null, 1)};`);
  }
}
mkdirSync(folder, { recursive: true });
const source = join(folder, "dashboards.ts");
writeFileSync(source, parts.join("\n"));
const settings = { strict: true, noEmit: true, skipLibCheck: true, module: "esnext", moduleResolution: "bundler", target: "es2022" };
const paths = { "*": [join(here, "node_modules/*")] };
const project = join(folder, "tsconfig.json");
writeFileSync(project, JSON.stringify({ compilerOptions: { ...settings, paths, types: [] }, files: ["dashboards.ts"] }));
try {
  execFileSync(join(here, "node_modules/.bin/tsc"), ["-p", project], { encoding: "utf8" });
} catch (error) {
  console.error(error.stdout);
  process.exit(1);
}
console.log(`${files.length} dashboards keep to the types of @grafana/schema`);
