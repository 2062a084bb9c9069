"""`turnlog agents`: whose logs are read, and from where."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import click

from turnlog.cli import figures
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.shapes import AgentDocument, AgentsDocument
from turnlog.cli.terminal import Column, write_json, write_table
from turnlog.store.base import AgentSummary


@click.command(epilog=examples("turnlog agents", "turnlog agents --json"))
@json_option
@store_option
def agents(as_json: bool, store_path: Path) -> None:
    """List the agents whose logs are read, their homes here, and how much of them the store holds.

    Kinds of records that are not known are kept as they are: `turnlog doctor --report` tells of them.
    """
    versions, unknown = _news(store_path)
    items = _items(_stored(store_path), versions, unknown)
    if as_json:
        document: AgentsDocument = {"items": items}
        write_json(document)
        return
    columns = (
        Column("Agent"),
        Column("Sessions", right=True),
        Column("Subagents", right=True),
        Column("Versions"),
        Column("Unknown kinds", right=True),
        Column("Homes", gives_way=True, is_path=True),
    )
    rows = [
        (
            item["agent"],
            figures.count(item["sessions"]),
            figures.count(item["subagents"]),
            _span([each["version"] for each in item["versions"]]),
            figures.count(len(item["unknown_kinds"])),
            ", ".join(item["roots"]) or "none here",
        )
        for item in items
    ]
    write_table(columns, rows)


def _stored(store_path: Path) -> dict[str, AgentSummary]:
    from turnlog.store import open_store

    if not store_path.exists():
        return {}
    with open_store(store_path) as store:
        return {summary.agent: summary for summary in store.agents()}


def _news(store_path: Path) -> tuple[dict[str, list[tuple[str, int]]], list[tuple[str, str, int]]]:
    """Versions that were seen, by agent, and kinds of records that are not known."""
    from turnlog.store.connection import connect
    from turnlog.store.queries.sources import load_unknown_kinds, load_versions

    if not store_path.exists():
        return {}, []
    with closing(connect(store_path, read_only=True)) as connection:
        return load_versions(connection), load_unknown_kinds(connection)


def _span(versions: list[str]) -> str:
    """`1.0.24` or `1.0.24 … 2.1.329`, by their numbers."""
    ordered = sorted(versions, key=lambda version: [int(number) for number in re.findall(r"\d+", version)])
    return " … ".join(dict.fromkeys((ordered[0], ordered[-1]))) if ordered else figures.UNKNOWN


def _items(
    stored: dict[str, AgentSummary],
    versions: dict[str, list[tuple[str, int]]],
    unknown: list[tuple[str, str, int]],
) -> list[AgentDocument]:
    """Agents that are installed, then those that only the store knows."""
    from turnlog.agents import agents as registered_agents
    from turnlog.agents import homes_of

    installed = {agent.name: agent for agent in registered_agents()}
    items: list[AgentDocument] = []
    for name in [*installed, *(name for name in stored if name not in installed)]:
        agent = installed.get(name)
        summary = stored.get(name) or AgentSummary(name, 0, 0, 0, None)
        items.append(
            {
                "agent": name,
                "display_name": None if agent is None else agent.display_name,
                "roots": [] if agent is None else [str(root) for root in homes_of(agent)],
                "sources": summary.sources,
                "sessions": summary.sessions,
                "subagents": summary.subagents,
                "updated_at": figures.iso(summary.updated_at),
                "versions": [{"version": version, "sessions": count} for version, count in versions.get(name, ())],
                "unknown_kinds": [{"kind": kind, "count": count} for owner, kind, count in unknown if owner == name],
            }
        )
    return items
