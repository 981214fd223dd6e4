// From what Prometheus answers to what Grafana draws: data frames with the panel's field settings applied.
import {
  applyFieldOverrides, cacheFieldDisplayNames, createTheme, type DataFrame, type Field, FieldConfigOptionsRegistry, FieldType, identityOverrideProcessor,
  standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry, transformDataFrame,
} from "@grafana/data";
import { lastValueFrom } from "rxjs";

export type Asked = { prometheus: string; system: string; from: number; to: number; step: number };
type Series = { metric: Record<string, string>; values?: [number, string][]; value?: [number, string] };

export const theme = createTheme({ colors: { mode: "dark" } });

// The settings that our dashboards use; a Grafana server has them from its panel plugins.
const STANDARD = ["unit", "min", "max", "mappings", "thresholds", "color", "displayName"];
const CUSTOM = [
  "drawStyle", "lineInterpolation", "lineWidth", "fillOpacity", "showPoints", "spanNulls", "stacking", "thresholdsStyle",
  "lineStyle", "align", "cellOptions", "filterable",
];
const setting = (path: string, isCustom: boolean) => ({
  id: isCustom ? `custom.${path}` : path, path, isCustom, name: path,
  process: identityOverrideProcessor, shouldApply: () => true, override: () => null, editor: () => null,
});
const registry = new FieldConfigOptionsRegistry(
  () => [...STANDARD.map((path) => setting(path, false)), ...CUSTOM.map((path) => setting(path, true))] as never,
);
standardFieldConfigEditorRegistry.setInit(() => STANDARD.map((path) => setting(path, false)) as never);
standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map((one) => ({
    ...one, transformation: () => Promise.resolve(one), editor: () => null, imageDark: "", imageLight: "",
  })) as never,
);

export function filled(expression: string, asked: Asked): string {
  return expression
    .replaceAll("$__rate_interval", `${4 * asked.step}s`).replaceAll("$__interval", `${asked.step}s`)
    .replaceAll("$system", asked.system).replaceAll(/\$(domain|query|operator)/g, ".+");
}

export async function series(expression: string, asked: Asked, instant = false): Promise<Series[]> {
  const times = instant ? { time: asked.to } : { start: asked.from, end: asked.to, step: asked.step };
  const body = new URLSearchParams({ query: filled(expression, asked), ...times } as never);
  const answer = await fetch(`${asked.prometheus}/api/v1/${instant ? "query" : "query_range"}`, { method: "POST", body });
  const told = await answer.json();
  if (told.status !== "success") throw new Error(`${expression}: ${told.error}`);
  return told.data.result;
}

const field = (name: string, type: FieldType, values: unknown[], more: Partial<Field> = {}): Field =>
  ({ name, type, values, config: {}, ...more }) as Field;

// One frame for each series: every step has its place, as the datasource does it, so that gaps stay gaps.
function overTime(one: Series, target: any, asked: Asked): DataFrame {
  const known = new Map(one.values!.map(([at, value]) => [Math.round((at - asked.from) / asked.step), Number(value)]));
  const places = [...Array(Math.floor((asked.to - asked.from) / asked.step) + 1).keys()];
  const { __name__, ...labels } = one.metric;
  const named = target.legendFormat === "__auto" ? "" : target.legendFormat.replace(/\{\{(\w+)\}\}/g, (_: string, label: string) => labels[label] ?? "");
  const times = field("Time", FieldType.time, places.map((place) => 1000 * (asked.from + place * asked.step)));
  const values = places.map((place) => (Number.isFinite(known.get(place)) ? known.get(place) : null));
  const config = named ? { displayNameFromDS: named } : {};
  return { refId: target.refId, length: places.length, fields: [times, field("Value", FieldType.number, values, { labels, config })] };
}

function asTable(all: Series[], target: any): DataFrame {
  const labels = [...new Set(all.flatMap((one) => Object.keys(one.metric)))];
  const fields = [
    field("Time", FieldType.time, all.map((one) => 1000 * one.value![0])),
    ...labels.map((label) => field(label, FieldType.string, all.map((one) => one.metric[label] ?? ""))),
    field(`Value #${target.refId}`, FieldType.number, all.map((one) => Number(one.value![1]))),
  ];
  return { refId: target.refId, length: all.length, fields };
}

export async function frames(panel: any, asked: Asked): Promise<DataFrame[]> {
  const answers = await Promise.all(
    panel.targets.map(async (target: any) => {
      const found = await series(target.expr, asked, target.instant);
      return target.instant ? [asTable(found, target)] : found.map((one) => overTime(one, target, asked));
    }),
  );
  const transformed = await lastValueFrom(transformDataFrame(panel.transformations ?? [], answers.flat()));
  const made = applyFieldOverrides({
    data: transformed, fieldConfig: panel.fieldConfig, fieldConfigRegistry: registry, theme, timeZone: "utc",
    replaceVariables: (text) => text,
  });
  cacheFieldDisplayNames(made);
  return made;
}
