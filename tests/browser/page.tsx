// A dashboard drawn with Grafana's own components, in the place that each panel has: window.draw(dashboard, asked).
// State timelines are no part of @grafana/ui: their bands are drawn here, with Grafana's own texts and colours of states.
import { type DataFrame, dateTime, getDisplayProcessor, getFieldDisplayName, ThemeContext } from "@grafana/data";
import { BigValue, GlobalStyles, PanelChrome, TimeSeries } from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";
import { createRoot } from "react-dom/client";
import { type Asked, frames, series, theme } from "./frames";

type Drawn = { panel: any; data: DataFrame[]; width: number; height: number; asked: Asked; switches: number[] };
const COLUMN = 58, ROW = 34, GAP = 8;

const shown = (field: any) => field.display ?? getDisplayProcessor({ field, theme, timeZone: "utc" });

function Lines({ panel, data, width, height, asked, switches }: Drawn) {
  const timeRange = { from: dateTime(1000 * asked.from), to: dateTime(1000 * asked.to), raw: { from: "", to: "" } };
  const marks = (builder: any) => {
    builder.addHook("draw", (plot: any) => {
      for (const at of switches) {
        const x = plot.valToPos(1000 * at, "x", true);
        plot.ctx.fillStyle = theme.visualization.getColorByName("purple");
        plot.ctx.fillRect(x, plot.bbox.top, 2, plot.bbox.height);
      }
    });
    return null;
  };
  return (
    <TimeSeries frames={data} timeRange={timeRange} timeZone="utc" width={width} height={height} legend={panel.options.legend}>
      {marks}
    </TimeSeries>
  );
}

function Number_({ panel, data, width, height }: Drawn) {
  const field = data[0].fields[1];
  const known = field.values.filter((value) => value !== null);
  const value = shown(field)(known.at(-1));
  const sparkline = { y: { ...field, values: field.values }, x: data[0].fields[0] };
  return <BigValue {...panel.options} value={value} sparkline={sparkline} theme={theme} width={width} height={height} />;
}

function Bands({ data, width, height }: Drawn) {
  const band = Math.min(34, height / data.length);
  return (
    <div className="bands" style={{ width, fontSize: 12 }}>
      {data.map((frame, number) => {
        const field = frame.fields[1], part = (width - 170) / frame.length;
        const runs: { value: any; since: number; length: number }[] = [];
        field.values.forEach((value, place) => {
          const last = runs.at(-1);
          if (last && last.value === value) last.length += 1;
          else runs.push({ value, since: place, length: 1 });
        });
        return (
          <div key={number} style={{ position: "relative", height: band }}>
            <span style={{ position: "absolute", width: 162, textAlign: "right", overflow: "hidden", whiteSpace: "nowrap" }}>{getFieldDisplayName(field, frame, data)}</span>
            {runs.filter((run) => run.value !== null).map((run) => {
              const state = shown(field)(run.value);
              const place = { left: 170 + run.since * part, width: run.length * part, height: band - 4 };
              return <div key={run.since} className="band" style={{ position: "absolute", overflow: "hidden", paddingLeft: 4, background: state.color, ...place }}>{state.text}</div>;
            })}
          </div>
        );
      })}
    </div>
  );
}

const Table = ({ panel, data, width, height }: Drawn) => (
  <TableNG data={data[0]} width={width} height={height} cellHeight={panel.options.cellHeight} fieldConfig={panel.fieldConfig} />
);

const KINDS: Record<string, (drawn: Drawn) => any> = { timeseries: Lines, stat: Number_, "state-timeline": Bands, table: Table };

async function draw(dashboard: any, asked: Asked): Promise<string[]> {
  const silent: string[] = [];
  const annotation = dashboard.annotations.list[0];
  const found = await series(annotation.expr, asked);
  const switches = found.flatMap((one) => one.values!.map(([at]) => at));
  if (!switches.length) silent.push(annotation.name);
  const parts = await Promise.all(
    dashboard.panels.map(async (panel: any) => {
      const { x, y, w, h } = panel.gridPos;
      const place = { position: "absolute" as const, left: x * COLUMN, top: 40 + y * ROW };
      if (panel.type === "row") return <h5 key={panel.id} style={{ ...place, margin: 0, padding: 8, fontSize: 14 }}>{panel.title}</h5>;
      const data = await frames(panel, asked);
      if (!data.some((frame) => frame.length)) silent.push(panel.title);
      const Kind = KINDS[panel.type];
      return (
        <div key={panel.id} style={place} className="panel" data-title={panel.title} data-kind={panel.type}>
          <PanelChrome title={panel.title} description={panel.description} width={w * COLUMN - GAP} height={h * ROW - GAP}>
            {(width: number, height: number) => <Kind {...{ panel, data, width, height, asked, switches }} />}
          </PanelChrome>
        </div>
      );
    }),
  );
  const height = 40 + ROW * Math.max(...dashboard.panels.map(({ gridPos }: any) => gridPos.y + gridPos.h));
  document.body.style.background = theme.colors.background.canvas;
  document.body.style.margin = "0";
  const root = document.createElement("div");
  document.body.replaceChildren(root);
  createRoot(root).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div id="page" style={{ position: "relative", width: 24 * COLUMN, height, fontFamily: theme.typography.fontFamily, color: theme.colors.text.primary }}>
        <h3 style={{ margin: 0, padding: "8px 6px", fontSize: 18 }}>{dashboard.title}</h3>
        {parts}
      </div>
    </ThemeContext.Provider>,
  );
  return silent;
}

(window as any).draw = draw;
