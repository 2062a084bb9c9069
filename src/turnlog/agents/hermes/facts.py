"""What other tables say about a session: its facts, what it has used, and which session it came out of.

No row has the tokens of a single call. What a session has used of a model for a task is a total of the session: which
calls and times its tokens belong to is unknown.
"""

from __future__ import annotations

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.decoding import branch_of
from turnlog.agents.hermes import NAME
from turnlog.agents.hermes.contents import time_of
from turnlog.agents.hermes.database import SESSIONS, Row, config_of, row_of
from turnlog.agents.hermes.row_log import HermesRowLine
from turnlog.agents.hermes.sources import session_id
from turnlog.agents.jsonl import JsonLines
from turnlog.model import RelationshipKind, SessionTotal, Usage
from turnlog.model.session import title_line

_LINES = JsonLines(HermesRowLine, first_keys=("table",), plausible=lambda line: line.table == SESSIONS)

_FACTS = ("source", "chat_type", "display_name", "profile_name", "end_reason", "api_call_count", "archived")
"""Columns of a session that are kept as metadata. A `source` other than `cli` is a channel of messages."""


class HermesFactsFold(StatelessFold):
    """Reads a line that is written anew each time."""

    def __init__(self, source: Source) -> None:
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for line, _json, _position, _length, _number in _LINES.read(data, offset, 1, changes):
            row = row_of(line.row)
            changes.counts.events += 1
            self._add_session(changes, row, line)
            self._add_link(changes, row, line)
        return changes

    def _add_session(self, changes: Changes, row: Row, line: HermesRowLine) -> None:
        known = {name: row[name] for name in _FACTS if row.get(name)}
        if line.cwd is not None:
            known["cwd_of_parent"] = True
        cwd = _text(row.get("cwd")) or line.cwd
        change = SessionChange(
            session_id=self._session_id,
            cwd=cwd,
            project_path=cwd,
            git_branch=branch_of(_text(row.get("git_branch"))),
            first_at=time_of(row.get("started_at")),
            last_at=time_of(row.get("ended_at")),
            # `session_model_usage` came with 0.19. Before, the session's own row has the only totals.
            totals=_totals_of([row_of(raw) for raw in line.rows] or [row]),
            metadata={NAME: known} if known else {},
        )
        title = title_line(_text(row.get("title")) or "")
        if title:
            # The column does not say whether a person or the model wrote the title.
            change.titles["generated"] = title
        changes.sessions[self._session_id] = change

    def _add_link(self, changes: Changes, row: Row, line: HermesRowLine) -> None:
        config = config_of(row)
        parent = config.delegate_from or config.branched_from or _text(row.get("parent_session_id"))
        if not parent or session_id(parent) == self._session_id:
            return
        kind: RelationshipKind = "continuation"
        if line.is_subagent:
            kind = "subagent"
        elif config.branched_from:
            kind = "fork"
        link = Link(
            kind=kind,
            parent_session_id=session_id(parent),
            child_session_id=self._session_id,
            tool_call_id=line.call,
            # A session names its parent, but not the call: that is found by the task.
            inferred=line.call is not None,
        )
        changes.links.append(link)


def _totals_of(rows: list[Row]) -> dict[str, SessionTotal]:
    """What was used of each model, by provider and task."""
    totals: dict[str, SessionTotal] = {}
    for row in rows:
        usage = usage_of(row)
        if usage is not None:
            model, task = _text(row.get("model")), _text(row.get("task"))
            # The primary key of `session_model_usage` without its addresses: one model may be used through two
            # providers.
            name = ":".join([model or "", _text(row.get("billing_provider")) or "", task or ""])
            calls = _count(row.get("api_call_count"))
            totals[name] = SessionTotal(model=model, usage=usage, calls=calls, task=task)
    return totals


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1 << 53:
        return value
    return None


def usage_of(row: Row) -> Usage | None:
    """What a row counts, in disjoint buckets; None if it counts nothing.

    `input_tokens` excludes what was read from the cache or written to it, `output_tokens` includes the thoughts.
    """
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    prompt, read, write, output, thoughts = (_count(row.get(name)) for name in names)
    if not any((prompt, read, write, output)):
        return None
    return Usage(
        input=prompt,
        cache_read=read,
        cache_write=write,
        output=None if output is None else max(0, output - (thoughts or 0)),
        # 0.13 counts 0 where it did not look.
        reasoning=thoughts or None,
    )
