"""`turnlog agents`: the agents whose logs are read, and their homes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.terminal import Column, write_json, write_table
from turnlog.store.usage_report import AgentSummary

if TYPE_CHECKING:
    from turnlog.cli.documents import AgentDocument, AgentsDocument
    from turnlog.store.values import AgentVersion, UnknownKind


@click.command(epilog=examples("turnlog agents", "turnlog agents --json"))
@json_option
@store_option
def agents(as_json: bool, store_path: Path) -> None:
    """List the agents whose logs are read, their homes on this machine, and how much of their history is stored.

    Records of unknown kinds are stored unchanged; `turnlog doctor --report` lists them.
    """
    from turnlog.agents import agents as registered_agents

    items = _items(store_path)
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
        Column("Homes", can_shrink=True, is_path=True),
    )
    elsewhere = {agent.name: agent.where for agent in registered_agents()}
    rows = [
        (
            item["agent"],
            formatting.count(item["sessions"]),
            formatting.count(item["subagents"]),
            _span([each.version for each in item["versions"]]),
            formatting.count(len(item["unknown_kinds"])),
            ", ".join(item["roots"]) or elsewhere.get(item["agent"]) or _missing(item["home_folders"]),
        )
        for item in items
    ]
    write_table(columns, rows)


def _missing(folders: list[str]) -> str:
    """Where homes are looked for: the first place, because editors have dozens, of every system. JSON has all."""
    if not folders:
        return ""
    more = f" +{len(folders) - 1} more" if len(folders) > 1 else ""
    return f"none at {folders[0]}{more}"


@dataclass(frozen=True)
class _Stored:
    """The agents in the store."""

    summaries: dict[str, AgentSummary]
    versions: Mapping[str, list[AgentVersion]]
    unknown_kinds: list[UnknownKind]


def _stored(store_path: Path) -> _Stored:
    from turnlog.store import open_store

    if not store_path.exists():
        return _Stored({}, {}, [])
    with open_store(store_path) as store:
        summaries = {summary.agent: summary for summary in store.agents()}
        return _Stored(summaries, store.agent_versions(), store.unknown_kinds())


def _span(versions: list[str]) -> str:
    """`1.0.24` or `1.0.24 … 2.1.329`, by their numbers."""
    ordered = sorted(versions, key=lambda version: [int(number) for number in re.findall(r"\d+", version)])
    return " … ".join(dict.fromkeys((ordered[0], ordered[-1]))) if ordered else formatting.UNKNOWN


def _items(store_path: Path) -> list[AgentDocument]:
    """The agents of this installation, then those that only the store has."""
    from turnlog.agents import agents as registered_agents
    from turnlog.agents import agents_here, homes_of

    stored = _stored(store_path)
    installed = {agent.name: agent for agent in registered_agents()}
    here = {agent.name for agent in agents_here()}
    items: list[AgentDocument] = []
    for name in [*installed, *(name for name in stored.summaries if name not in installed)]:
        agent = installed.get(name)
        summary = stored.summaries.get(name) or AgentSummary(name, 0, 0, 0, None)
        items.append(
            {
                "agent": name,
                "display_name": None if agent is None else agent.display_name,
                "roots": [] if agent is None or name not in here else [str(root) for root in homes_of(agent)],
                "home_folders": [] if agent is None else [str(folder) for folder in agent.home_folders()],
                "sources": summary.sources,
                "sessions": summary.sessions,
                "subagents": summary.subagents,
                "updated_at": formatting.iso(summary.updated_at),
                "versions": stored.versions.get(name, []),
                "unknown_kinds": [
                    {"kind": each.kind, "count": each.count} for each in stored.unknown_kinds if each.agent == name
                ],
            }
        )
    return items
