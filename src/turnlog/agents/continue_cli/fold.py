"""The fold of one session, which Continue rewrites whole.

Messages have no ids and no times: they are named by their place in the history, which only grows. A fork is a new
session with the same messages at its beginning. Nothing says so, but a session counts only the tokens of its own calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, UnsetType

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, SessionChange
from turnlog.agents.continue_cli import LIST, NAME
from turnlog.agents.continue_cli.contents import call_parts, content_parts, decoded, usage_of
from turnlog.agents.continue_cli.records import FILES, ITEMS, CallUsage, HistoryItem, SessionFile
from turnlog.agents.continue_cli.sidecars import UNTITLED
from turnlog.agents.continue_cli.sources import session_id
from turnlog.agents.decoding import LineContext, object_of, text_of, value_of
from turnlog.agents.files import read_regular_file
from turnlog.agents.json_file import locate_items, read_object
from turnlog.model import CompactionEvent, Message, Origin, Part, ReasoningPart, TextPart
from turnlog.model.session import title_from, title_given


def _is_item(fields: dict[str, Any]) -> bool:
    return isinstance(fields.get("message"), dict)


class ContinueFold(StatelessFold):
    """Reads one session."""

    def __init__(self, source: Source) -> None:
        """Read a session."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        reading = _Reading(self._source)
        reading.read(data)
        return reading.changes


class _Reading(LineContext):
    """One reading of a file."""

    def __init__(self, source: Source) -> None:
        super().__init__(Changes())
        self._source = source
        self._external = (source.session_id or "").partition(":")[2] or Path(source.path).stem
        # A later version of the file may have dropped messages, of which this one says nothing.
        self._session = SessionChange(session_id=session_id(self._external), has_branches=True)
        self._leaf: str | None = None
        self._turn = self._step = 0

    def read(self, data: bytes) -> None:
        """Read a whole file; of a damaged one the items that are complete."""
        record = read_object(self, data, FILES, _is_item)
        if record is None:
            return
        self.changes.sessions[self._session.session_id] = self._session
        self._read_facts(record)
        found = [
            (ITEMS.decode(bytes(raw)), position, length)
            for raw, position, length in locate_items(record.history or (), self.json, self.position)
        ]
        counted = [None if isinstance(item, str) else _usage_in(item.record) for item, *_ in found]
        own = _first_own(record, counted)
        origin = origin_of(self._source, record.history or (), own) if own else None
        if origin is not None:
            self._add_link(origin)
        for number, (item, position, length) in enumerate(found):
            if isinstance(item, str):
                self.report(item, json_path=f"$.history[{number}]")
                self.changes.counts.unreadable += 1
                continue
            for problem in item.problems:
                self.report(problem.reason, problem.severity, problem.json_path)
            copied_from = origin if number < own else None
            self._read_item(item.record, number, (position, length), counted[number], copied_from)

    def _add_link(self, origin: str) -> None:
        # No file names what a fork came out of: equal items do.
        self.changes.links.append(
            Link(
                kind="fork",
                parent_session_id=session_id(origin),
                child_session_id=self._session.session_id,
                inferred=True,
            )
        )

    def _read_facts(self, record: SessionFile) -> None:
        folder = record.workspace_directory
        if folder:
            self._session.cwd = self._session.project_path = folder.removeprefix("file://")
        if record.title and record.title != UNTITLED:
            self._session.titles["generated"] = title_given(record.title)
        self.changes.counts.events += 1

    def _read_item(
        self, item: HistoryItem, number: int, record: tuple[int, int], used: CallUsage | None, origin: str | None
    ) -> None:
        message = item.message
        # Items have no ids. A fork's copied ones get those of the original, so that they are stored and billed once.
        identity = f"{origin or self._external}.{number}"
        if message is None:
            self.report("the item has no message", json_path=f"$.history[{number}]")
            self.changes.counts.unreadable += 1
            return
        parts = list(content_parts(message.content, identity))
        is_answer = message.role in ("assistant", "thinking")
        if is_answer:
            self._step += 1
            parts = [*_thoughts(item, identity), *parts] if message.role == "assistant" else _as_thoughts(parts)
            parts += call_parts(message.tool_calls or (), item.tool_call_states or (), identity, len(parts))
            parts = _numbered(parts, identity)
        elif message.role == "user":
            self._turn, self._step = self._turn + 1, 0
            title = title_from("\n".join(part.text for part in parts if isinstance(part, TextPart)))
            if title:
                self._session.titles.setdefault("prompt", title)
        self._add(
            Message(
                id=identity,
                role="assistant" if is_answer else "user" if message.role == "user" else "developer",
                parts=tuple(parts),
                origin=None if is_answer else Origin.PROMPT if message.role == "user" else Origin.HARNESS,
                model=used.model if used is not None else None,
                usage=usage_of(used),
                metadata={NAME: item.others} if item.others else {},
            ),
            record,
            step=self._step if is_answer else None,
            is_copied=origin is not None,
        )
        if item.conversation_summary:
            self._add_compaction(item.conversation_summary, identity, record)

    def _add(self, message: Message, record: tuple[int, int], *, step: int | None, is_copied: bool) -> None:
        results = [result.id for part in message.parts for result in getattr(part, "results", ())]
        placement = Placement(
            session_id=self._session.session_id,
            position=record[0],
            # Results are placed within the item, behind its message.
            records=((*record, None), *((record[0] + place, 0, name) for place, name in enumerate(results, 1))),
            record_ids=(message.id,),
            parent_id=self._leaf,
            turn=self._turn or None,
            step=step,
            copied=is_copied,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1
        self._leaf = self._session.active_leaf = message.id

    def _add_compaction(self, summary: str, identity: str, record: tuple[int, int]) -> None:
        """Add a summary, which replaces everything up to its message."""
        named = f"{identity}.summary"
        message = Message(
            id=named,
            role="developer",
            parts=(TextPart(id=f"{named}.0", text=summary),),
            origin=Origin.COMPACTION,
        )
        event = CompactionEvent(id=f"{identity}.compaction", position=sum(record), replacement=(message,))
        self.changes.events.append(EventChange(session_id=self._session.session_id, event=event, parent_id=self._leaf))


def _usage_in(item: HistoryItem) -> CallUsage | None:
    return None if item.message is None else decoded(item.message.usage, CallUsage)


def origin_of(source: Source, history: Sequence[Raw], copied: int) -> str | None:
    """The session whose first messages a fork copied: the one next to it that has the same; None if it is gone."""
    own = Path(source.path)
    for path in sorted(own.parent.glob("*.json")):
        if path == own or path.name == LIST:
            continue
        try:
            found = FILES.decode(read_regular_file(path))
        except OSError:
            continue
        if isinstance(found, str):
            continue
        other = found.record
        counted = [_usage_of_item(raw) for raw in other.history or ()]
        is_same = [bytes(raw) for raw in (other.history or ())[:copied]] == [bytes(raw) for raw in history[:copied]]
        if is_same and _first_own(other, counted) == 0:
            return other.session_id or path.stem
    return None


def _usage_of_item(raw: Raw) -> CallUsage | None:
    """The tokens of an item."""
    found = ITEMS.decode(bytes(raw))
    return None if isinstance(found, str) else _usage_in(found.record)


def _first_own(record: SessionFile, counted: list[CallUsage | None]) -> int:
    """The number of the first item that is not copied from another session, by the tokens that the session counts."""
    total = record.usage.prompt_tokens if record.usage is not None else None
    prompts = [(one.prompt_tokens or 0) if one is not None else 0 for one in counted]
    if not total or sum(prompts) <= total:
        return 0
    left, first = total, len(prompts)
    while first and left > 0:
        first -= 1
        left -= prompts[first]
    # The prompt before the first call belongs to it.
    return max(0, first - 1) if left == 0 else 0


def _thoughts(item: HistoryItem, identity: str) -> list[Part]:
    if isinstance(item.reasoning, UnsetType):
        return []
    text = text_of(object_of(value_of(item.reasoning)).get("text"))
    return [ReasoningPart(id=identity, text=text)] if text else []


def _as_thoughts(parts: list[Part]) -> list[Part]:
    """What the extension logs as a message of the role `thinking`."""
    return [ReasoningPart(id=part.id, text=part.text) if isinstance(part, TextPart) else part for part in parts]


def _numbered(parts: list[Part], identity: str) -> list[Part]:
    return [msgspec.structs.replace(part, id=f"{identity}.{number}") for number, part in enumerate(parts)]
