// @vitest-environment happy-dom

import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { ContextStep, ProjectPeriod, UsageReport, UsageTotals } from "@/api/types";
import { shownLabels } from "@/charts/bar-chart";
import { daysOf, everyPeriod, periodLabel } from "@/charts/calendar";
import { FiguresTable } from "@/charts/figures-table";
import { COST as PROJECT_COST, chartOf as projectChart } from "@/insights/projects-over-time";
import { chartOf as contextChart } from "@/session/page/context-growth";
import { Budgets } from "@/usage/budgets";
import { COST } from "@/usage/measures";
import { chartOf } from "@/usage/time-chart";
import { renderAt } from "./render";

describe("the periods of a chart", () => {
  it("are all from the first to the last, also those in which nothing happened", () => {
    expect(everyPeriod(["2026-10-27", "2026-10-24"], "day")).toEqual([
      "2026-10-24",
      "2026-10-25",
      "2026-10-26",
      "2026-10-27",
    ]);
    expect(everyPeriod(["2026-10-19", "2026-11-02"], "week")).toEqual([
      "2026-10-19",
      "2026-10-26",
      "2026-11-02",
    ]);
    expect(everyPeriod(["2026-12", "2027-02"], "month")).toEqual(["2026-12", "2027-01", "2027-02"]);
    expect(everyPeriod([], "day")).toEqual([]);
  });

  it("are only those with figures, where there are too many", () => {
    expect(everyPeriod(["1999-01-01", "2026-10-24"], "day")).toEqual(["1999-01-01", "2026-10-24"]);
  });

  it("have names and days", () => {
    expect(periodLabel("2026-11-20T14:00+01:00", "hour")).toBe("20 Nov 14:00");
    expect(periodLabel("2026-11", "month")).toBe("Nov 2026");
    expect(daysOf("2026-11", "month")).toEqual({ since: "2026-11-01", until: "2026-11-30" });
    expect(daysOf("2026-11-16", "week")).toEqual({ since: "2026-11-16", until: "2026-11-22" });
    expect(daysOf("2026-11-20T14:00Z", "hour")).toEqual({ since: "2026-11-20", until: "2026-11-20" });
  });

  it("are named as far as there is room, the last one always", () => {
    const names = ["a", "b", "c", "d", "e"];
    expect(shownLabels(names, 1000, 72)).toEqual(names);
    expect(shownLabels(names, 200, 72)).toEqual(["a", "c", "e"]);
    expect(shownLabels(names, 200, 120)).toEqual(["b", "e"]);
  });
});

function totals(cost: number | null): UsageTotals {
  return { cost, calls: 1, tokens: 10 } as UsageTotals;
}

function report(changes: Partial<UsageReport>): UsageReport {
  return { by: "day", then_by: null, rows: [], ...changes } as UsageReport;
}

describe("the chart of a usage report", () => {
  const part = (name: string, cost: number | null) => ({ name, label: null, totals: totals(cost) });
  const row = (name: string, cost: number | null, parts: ReturnType<typeof part>[] = []) => ({
    ...part(name, cost),
    parts,
    block: null,
    active_ms: null,
  });

  it("has one series where nothing is divided, and no bar for what is unknown", () => {
    const chart = chartOf(report({ rows: [row("2026-11-20", 2), row("2026-11-21", null)] }), COST, {
      agent: "codex",
    });
    expect(chart?.series).toHaveLength(1);
    expect(chart?.periods.map(({ values }) => [...values.values()])).toEqual([[2], [0]]);
    expect(chart?.series[0]?.hrefAt?.("2026-11-20")).toBe("/?agent=codex&since=2026-11-20&until=2026-11-20");
  });

  it("is the same whether days are divided by model or models by day", () => {
    const days = report({ then_by: "model", rows: [row("2026-11-20", 3, [part("a", 1), part("b", 2)])] });
    const models = report({
      by: "model",
      then_by: "day",
      rows: [row("b", 2, [part("2026-11-20", 2)]), row("a", 1, [part("2026-11-20", 1)])],
    });
    const shown = [days, models].map((each) => {
      const chart = chartOf(each, COST, {});
      return chart?.series.map(({ key, href }) => [href, chart.periods[0]?.values.get(key)]);
    });
    expect(shown[0]).toEqual([
      ["/?model=b", 2],
      ["/?model=a", 1],
    ]);
    expect(shown[1]).toEqual(shown[0]);
  });

  it("is none where nothing is a time", () => {
    expect(chartOf(report({ by: "model", then_by: "project", rows: [row("a", 1)] }), COST, {})).toBeNull();
  });
});

it("puts all but the costliest projects into one series, and unknown ones lead nowhere", () => {
  const periods = [null, ..."abcdefgh"].map(
    (project, index) =>
      ({ period: "2026-11-20", project, label: project, cost: 10 - index }) as ProjectPeriod,
  );
  const chart = projectChart(periods, "day", PROJECT_COST);
  expect(chart.series.map(({ name }) => name)).toEqual(["unknown", "a", "b", "c", "d", "e", "Others"]);
  expect(chart.series[0]?.href).toBeNull();
  expect(chart.periods[0]?.values.get("Others")).toBe(4 + 3 + 2);
});

it("tells projects of one name apart by the folder above, on several days too", () => {
  const of = (period: string, project: string, name: string) => ({
    ...{ period, project, label: name, sessions: 1, calls: 1, cost: 1, unpriced_calls: 0 },
  });
  const periods = [of("2026-11-20", "/a/work", "work"), of("2026-11-21", "/a/work", "work")];
  const other = of("2026-11-20", "/b/work", "work");
  const namesOf = (each: typeof periods) =>
    projectChart(each as Parameters<typeof projectChart>[0], "day", PROJECT_COST).series.map(
      ({ name }) => name,
    );
  expect(namesOf(periods)).toEqual(["work"]);
  expect(namesOf([...periods, other])).toEqual(["work · /a", "work · /b"]);
});

it("warns of a budget that is nearly spent, in words", () => {
  const budget = { name: "2026-11", limit: 10, unpriced_calls: 0 };
  renderAt(
    "/",
    <Budgets
      budgets={[
        { ...budget, period: "day", spent: 2, is_exceeded: false },
        { ...budget, period: "week", spent: 8, is_exceeded: false },
        { ...budget, period: "month", spent: 12, is_exceeded: true },
      ]}
    />,
  );
  const shown = screen.getAllByRole("listitem").map((item) => item.textContent);
  expect(shown).toEqual([
    " Budget of the day$2.00 of $10.00 (20 %)",
    " Budget of the week: nearly spent$8.00 of $10.00 (80 %)",
    " Budget of the month: exceeded$12.00 of $10.00 (120 %)",
  ]);
});

describe("a table of figures", () => {
  const rows = Array.from({ length: 50 }, (_, index) => ({ key: `${index}`, cells: [`file ${index}`, "1"] }));

  it("says how many rows there are, also those that it does not have", () => {
    renderAt("/insights", <FiguresTable columns={["File", "Edits"]} rows={rows} found={1909} />);
    expect(screen.getByRole("button").textContent).toBe("Show 50 of 1,909");
  });

  it("shows all of them if it has them", () => {
    renderAt("/insights", <FiguresTable columns={["File", "Edits"]} rows={rows} />);
    expect(screen.getByRole("button").textContent).toBe("Show all 50");
  });
});

it("shows the step after a compaction, where several steps share a bar", () => {
  const steps = Array.from({ length: 400 }, (_, position) => ({
    position,
    message_id: `m${position}`,
    context: position < 200 ? 1000 + position : position,
    is_compacted: position === 200,
  })) as ContextStep[];
  const { periods } = contextChart(steps);
  expect(periods).toHaveLength(134);
  const compacted = periods.filter(({ values }) => values.has("compacted"));
  expect(compacted.map(({ name, values }) => [name, values.get("compacted")])).toEqual([["200", 200]]);
  expect(periods[0]?.values.get("context")).toBe(1002);
});
