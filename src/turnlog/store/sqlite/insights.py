"""Insights in SQLite: activity, projects over time, tools, commands, files, models, compactions and errors."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from decimal import Decimal
from typing import Final

from turnlog.store.base import ALL_INSIGHTS, InsightFilter
from turnlog.store.dollars import Dollars, dollars
from turnlog.store.insights import (
    ActivityHour,
    CompactionFigures,
    ErrorFigures,
    Insights,
    ModelFigures,
    ProjectPeriod,
    SubagentShare,
    error_label,
)
from turnlog.store.periods import date_of
from turnlog.store.rows import moment
from turnlog.store.sqlite import kept_insights
from turnlog.store.sqlite.call_figures import (
    CallSums,
    Chosen,
    commands,
    count_commands,
    edited_files,
    failed_by_model,
    tools,
)
from turnlog.store.sqlite.hours import in_quarter_hours
from turnlog.store.sqlite.insight_sums import ComparedSums, Sums, divide, read_sums
from turnlog.store.sqlite.reading import Connections


class InsightQueries(Connections):
    """The query of `Store` for insights."""

    _keeps_sums = True
    """Sums of quiet sessions are kept in `kept_insights`."""

    def insights(
        self, filter: InsightFilter = ALL_INSIGHTS, *, zone: tzinfo | None = UTC, limit: int | None = None
    ) -> Insights:
        keeps = self._keeps_sums and filter == ALL_INSIGHTS
        if keeps:
            with self._snapshot() as connection:
                is_due = kept_insights.is_due(connection, zone)
            if is_due:
                kept_insights.keep(self.path, zone)
        with self._snapshot() as connection:
            chosen = _chosen(filter)
            division = divide(connection, chosen, zone)
            sums = kept_insights.load(connection, division) if keeps else None
            if sums is None:
                sums = read_sums(connection, chosen, division)
            calls = [CallSums(*key, *counts) for key, counts in sums.calls.items()]
            models = _models(sums, _names(connection), failed_by_model(calls))
            errors = _errors(sums)
            files, files_found = edited_files(connection, sums.edits, chosen, limit)
            return Insights(
                zone="local" if zone is None else str(zone),
                granularity=division.granularity,
                activity=_activity(sums),
                undated_calls=sums.undated,
                projects=_projects(connection, sums),
                tools=tools(calls),
                commands=commands(connection, calls, chosen, limit),
                commands_found=count_commands(calls),
                files=files,
                files_found=files_found,
                models=models,
                subagents=_subagents(sums),
                compactions=_compactions(sums),
                errors=errors[:limit],
                errors_found=len(errors),
                notes=_notes(sum(model.unpriced_calls for model in models)),
            )


def _chosen(filter: InsightFilter) -> Chosen:
    conditions: list[str] = []
    if filter.agent is not None:
        conditions.append("agent = :agent")
    if filter.project is not None:
        conditions.append("project_key IN (SELECT key FROM projects WHERE path = :project OR name = :project)")
    return in_quarter_hours(filter.since, filter.until)._replace(
        sessions=f"SELECT key FROM sessions WHERE {' AND '.join(conditions)}" if conditions else None,
        values={"agent": filter.agent, "project": filter.project},
    )


# -- activity and projects


def _activity(sums: Sums) -> list[ActivityHour]:
    return [
        ActivityHour(hour // 24 + 1, hour % 24, sums.prompts.get(hour, 0), sums.called.get(hour, 0))
        for hour in sorted({*sums.prompts, *sums.called})
    ]


def _projects(connection: sqlite3.Connection, sums: Sums) -> list[ProjectPeriod]:
    named = {key: (path, name) for key, path, name in connection.execute("SELECT key, path, name FROM projects")}
    found = [
        ProjectPeriod(
            period=_day(day),
            project=path,
            label=label,
            sessions=each.sessions,
            calls=each.calls,
            cost=_cost(each.cost, each.priced),
            unpriced_calls=each.unpriced,
        )
        for (day, project), each in sums.projects.items()
        for path, label in [named.get(project, (None, None))]
    ]
    return sorted(found, key=lambda each: (each.period, each.project or ""))


def _day(day: int) -> str:
    return date_of(day).isoformat()


def _cost(nanos: int, priced: int) -> Dollars | None:
    """The cost of so many calls and totals of known price; None if there is none."""
    return dollars(nanos) if priced > 0 else None


def _subagents(sums: Sums) -> SubagentShare:
    theirs, models = sums.subagents, sums.models.values()
    cost = _cost(theirs.cost, theirs.priced) if theirs.sessions else Dollars(0)
    total = _cost(sum(each.cost for each in models), sum(each.priced for each in models))
    return SubagentShare(
        sessions=theirs.sessions,
        calls=theirs.calls,
        total_calls=sum(each.calls for each in models),
        cost=cost,
        total_cost=total,
        share=None if cost is None or not total else float(cost / total),
    )


# -- models


def _names(connection: sqlite3.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT key, name FROM models").fetchall())


def _models(sums: Sums, names: Mapping[int, str], failed: Counter[int]) -> list[ModelFigures]:
    found = [
        ModelFigures(
            model=names.get(key),
            calls=each.calls,
            sessions=each.sessions,
            cost=_cost(each.cost, each.priced),
            unpriced_calls=each.unpriced,
            cache_share=_ratio(each.cached, each.cached + each.uncached),
            output_per_call=_ratio(each.output, each.calls - each.unknown),
            is_lower_bound=bool(each.lower_bound),
            failed_tool_calls=failed[key],
            compared_sessions=alone.sessions,
            cost_per_prompt=dollars(Decimal(alone.cost) / alone.priced_prompts) if alone.priced_prompts else None,
            steps_per_prompt=_ratio(alone.steps, alone.prompts),
        )
        for key, each in sums.models.items()
        for alone in [sums.compared.get(key, _NONE)]
    ]
    return sorted(found, key=lambda each: (-(each.cost or Decimal(0)), -each.calls, each.model or ""))


_NONE: Final = ComparedSums(0, 0, 0, 0, 0)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# -- events


def _compactions(sums: Sums) -> list[CompactionFigures]:
    found = [
        CompactionFigures(
            agent,
            trigger,
            compactions=each.compactions,
            sessions=each.sessions,
            median_tokens_before=_median(each.tokens_before),
        )
        for (agent, trigger), each in sums.compactions.items()
    ]
    return sorted(found, key=lambda each: (-each.compactions, each.agent, each.trigger or ""))


def _median(known: Sequence[int]) -> float | None:
    # It imports fractions and random numbers, which no other query needs.
    from statistics import median

    return median(known) if known else None


def _errors(sums: Sums) -> list[ErrorFigures]:
    most = sorted(sums.errors.items(), key=lambda item: (-item[1].errors, str(item[0])))
    return [
        ErrorFigures(
            agent,
            kind,
            error_label(kind),
            status,
            is_limit,
            errors=each.errors,
            sessions=each.sessions,
            last_at=moment(each.last.at or None),
            last_session_id=each.last.session_id,
            last_message_id=each.last.message_id or None,
        )
        for (agent, kind, status, is_limit), each in most
    ]


def _notes(unpriced: int) -> list[str]:
    notes = [
        "Cost is computed from tokens and the prices of the day.",
        "Commands are grouped by program and subcommand; of several in one call, the first one counts"
        " that does more than prepare another, as cd, export and echo do.",
        "Figures per prompt are approximate: they come from whole sessions of one model, without subagents.",
        "Limits are recognised by status and by words of the error, so they are approximate. Attempts that an agent"
        " repeated count too, where it logs them.",
    ]
    if unpriced:
        notes.append(f"{unpriced:,} call{'' if unpriced == 1 else 's'} of unknown cost: no sum of costs contains them.")
    return notes
