"""Questions to every method of a store that reads, and their answers in a form in which two engines can be compared.

Left out of answers is only what is private to an engine: cursors (their pages are walked instead), numbers of the
change sequence, its file, and places in the archive that a window passes on unread.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, cast, get_args
from zoneinfo import ZoneInfo

import msgspec

from turnlog.errors import TurnlogError
from turnlog.model import Fate, RelationshipKind, ToolCallPart, ToolKind, ToolState
from turnlog.model.message import part_ids
from turnlog.store import zstd
from turnlog.store.base import (
    DiagnosticFilter,
    FileFilter,
    InsightFilter,
    RunFilter,
    SessionFilter,
    Store,
    ToolCallFilter,
    UsageFilter,
)
from turnlog.store.choices import RUN_STATUSES, SESSION_SORTS, USAGE_BY
from turnlog.store.values import Page, RawSource, SessionChanges, StoreStatus
from turnlog.store.window import FrameWindow

EVERY_FATE: Final = tuple(Fate)
BERLIN: Final = ZoneInfo("Europe/Berlin")
KATHMANDU: Final = ZoneInfo("Asia/Kathmandu")


class Question(NamedTuple):
    """A call of a method."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}

    def __str__(self) -> str:
        """The call, as it would be written."""
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.method}({', '.join(given)})"


def ask(store: Store, question: Question) -> Any:
    """The answer, or the error: its type and words."""
    method = partial(restored, store) if question.method == "restored" else getattr(store, question.method)
    try:
        if question.method in ("sessions", "tool_calls", "runs", "run_messages", "diagnostics", "file_history"):
            return _all_pages(method, question)
        return _comparable(method(*question.args, **question.kwargs))
    except (TurnlogError, ValueError) as error:
        return type(error).__name__, str(error)


def _all_pages(method: Callable[..., Any], question: Question) -> list[Any]:
    """All pages, without their cursors."""
    pages: list[Any] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        page = method(*question.args, **question.kwargs, cursor=cursor)
        holder = cast("Page[Any]", page if isinstance(page, Page) else page.touches)
        cursor = holder.next_cursor
        pages.append(_without_cursor(page))
        if len(pages) > 200:
            raise AssertionError(f"{question} has no end")
    return pages


def _without_cursor(page: Any) -> Any:
    if isinstance(page, Page):
        return msgspec.structs.replace(cast("Page[Any]", page), next_cursor=None)
    return msgspec.structs.replace(page, touches=_without_cursor(page.touches))


def _comparable(answer: Any) -> Any:
    match answer:
        case FrameWindow():
            messages = [body for frame in answer.frames for body in _bodies(zstd.decompress(frame))]
            rows, events = msgspec.json.decode(answer.rows), msgspec.json.decode(answer.events)
            return messages, rows, events, answer.has_before, answer.has_after
        case SessionChanges():
            changed = sorted(json.dumps(_readable(body)) for body in answer.messages)
            rows = sorted(msgspec.json.decode(answer.rows), key=json.dumps)
            return changed, rows, msgspec.json.decode(answer.events), answer.gone_messages, answer.gone_events
        case StoreStatus():
            private = {"path": "", "file_size": 0, "change_sequence": 0, "archive_bytes": 0, "schema_version": 0}
            return msgspec.structs.replace(answer, **private)
        case _ if isinstance(answer, Iterator):
            return [
                (each.source, b"".join(each.pieces)) if isinstance(each, RawSource) else each
                for each in cast("Iterator[Any]", answer)
            ]
        case _:
            return answer


def _bodies(frame: bytes) -> list[Any]:
    return [_readable(body) for body in msgspec.json.decode(b"[%b]" % frame, type=list[msgspec.Raw])]


def _readable(body: bytes | msgspec.Raw) -> Any:
    """A body without the texts that one engine keeps in the archive."""
    return _without_places(msgspec.json.decode(bytes(body)))


def _without_places(value: Any) -> Any:
    match value:
        case {"$archived": _}:
            return ""
        case dict():
            return {name: _without_places(each) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_without_places(each) for each in cast("list[Any]", value)]
        case str() if len(value) >= 256:
            return ""  # one engine may have its place in the archive instead
        case _:
            return value


class Questions:
    """Questions about everything that a store has."""

    def __init__(self, store: Store, every: int = 1) -> None:
        """`store` lists what there is. Sessions are queried one by one, of each agent each of so many."""
        self._store = store
        self._sessions = [
            session
            for page in _all_pages(store.sessions, Question("sessions", (SessionFilter(subagents=True),)))
            for session in page.items
        ]
        self._ids = sorted(session.id for session in self._sessions)
        self._chosen = self._ids[::every]

    def __iter__(self) -> Iterator[Question]:
        """All of them."""
        for method in (
            *("projects", "models", "agents", "agent_versions", "fingerprints", "unknown_kinds", "status", "sources"),
            *("reasoning", "diagnostic_counts", "unread_logs", "tasks"),
        ):
            yield Question(method)
        yield from (Question("task", (name,)) for name in ("t1", "nobody"))
        yield from self._of_sessions()
        for session_id in [*self._chosen, "toy:nobody", "no-colon"]:
            yield from self._of_session(session_id)
        yield from self._of_calls()
        yield from self._of_files()
        yield from self._of_usage()
        yield from self._of_sources()
        yield from self._of_runs()

    def _of_sessions(self) -> Iterator[Question]:
        for sort in SESSION_SORTS:
            yield Question("sessions", kwargs={"sort": sort, "count": True, "limit": 7})
        for wanted in self._session_filters():
            yield Question("sessions", (wanted,), {"count": True, "limit": 50})
        for method in ("previews", "turn_facts", "annotations", "parents", "newest_runs"):
            yield Question(method, ([*self._ids, "toy:nobody"],))
        yield Question("find_session", ("toy", "nobody"))
        yield Question("ids_beginning", (("0", "2222", "s"),))
        for session in self._sessions[:5]:
            yield Question("find_session", (session.agent, session.external_id))

    def _session_filters(self) -> Iterator[SessionFilter]:
        for agent in sorted({session.agent for session in self._sessions}):
            yield SessionFilter(agent=agent, subagents=True)
        for project in sorted({session.project.path for session in self._sessions if session.project})[:12]:
            yield SessionFilter(project=project)
        for model in sorted({model for session in self._sessions for model in session.models})[:8]:
            yield SessionFilter(model=model)
        for branch in sorted({session.git_branch for session in self._sessions if session.git_branch}):
            yield SessionFilter(branch=branch)
        for kind in get_args(RelationshipKind):
            yield SessionFilter(relationship=kind)
        for parent in [session.id for session in self._sessions][:20]:
            yield SessionFilter(parent=parent)
        for text in ("fix", "THE", "%", "_", "ÜBER", "ß", "'"):
            yield SessionFilter(title=text)
        for flag in (True, False):
            yield SessionFilter(owned=flag)
            yield SessionFilter(native=flag)
            yield SessionFilter(imported=flag)
            yield SessionFilter(starred=flag)
            yield SessionFilter(archived=flag)
        times = sorted(session.updated_at for session in self._sessions if session.updated_at)
        for time in times[:: max(1, len(times) // 5)]:
            yield SessionFilter(since=time)
            yield SessionFilter(until=time, subagents=True)
        yield SessionFilter(tag="important")
        yield SessionFilter(user="ann")
        yield SessionFilter(machine="laptop")

    def _of_session(self, session_id: str) -> Iterator[Question]:
        for method in (
            *("session", "children", "relationships", "messages", "child_sessions", "history", "events", "passage"),
            *("outline", "window", "reasoning", "sources", "raw", "plan_forgetting", "context_steps", "extent"),
        ):
            yield Question(method, (session_id,))
        yield Question("messages", (session_id,), {"structured": list(ToolKind), "resolve_blobs": False})
        yield Question("messages", (session_id,), {"fates": [Fate.ACTIVE]})
        yield Question("history", (session_id,), {"resolve_blobs": False})
        yield Question("events", (session_id,), {"type": "compaction"})
        yield Question("places", (session_id,), {"fates": EVERY_FATE})
        yield Question("places", (session_id,), {"fates": [Fate.ACTIVE], "since": 5, "limit": 3})
        yield Question("bodies", (session_id, 0, 1 << 62), {"fates": EVERY_FATE})
        yield Question("run_facts", (session_id, None, None))
        yield Question("restored", (session_id,))
        positions = self._positions(session_id)
        for position in positions[:: max(1, len(positions) // 3)]:
            for bound in ("after", "before", "around"):
                for method in ("messages", "passage", "window"):
                    yield Question(method, (session_id,), {bound: position, "limit": 3})
            yield Question("events", (session_id,), {"position": position})

    def _positions(self, session_id: str) -> list[int]:
        try:
            return [place.position for place in self._store.places(session_id, fates=EVERY_FATE)]
        except TurnlogError:
            return []

    def of_messages(self) -> Iterator[Question]:
        """Questions about single messages, of every session the first ones."""
        yield Question("message", ("nobody",))
        yield Question("part", ("nobody.0",))
        yield Question("spill", ("toy:nobody", "nothing.txt"))
        for session_id in self._chosen:
            first = self._store.messages(session_id, limit=6)
            yield Question("messages_at", (session_id, [placed.membership.position for placed in first[::2]]))
            for placed in first:
                message = placed.message
                yield Question("message", (message.id,), {"session_id": session_id, "structured": True})
                yield Question("memberships", (message.id,))
                yield Question("records", (message.id,), {"session_id": session_id})
                for part_id in part_ids(message)[:2]:
                    yield Question("part", (part_id,))
                for call in message.parts:
                    if isinstance(call, ToolCallPart):
                        for result in call.results:
                            if result.spilled_to is not None:
                                yield Question("spill", (session_id, result.spilled_to))

    def _of_calls(self) -> Iterator[Question]:
        page = self._store.tool_calls(limit=500)
        yield Question("tool_calls", (ToolCallFilter(),), {"limit": 3})
        yield Question("tool_calls", (ToolCallFilter(failed=True),), {"limit": 1})
        for wanted in self._call_filters(list(page.items)):
            yield Question("tool_calls", (wanted,), {"limit": 60})
            yield Question("tool_usage", (wanted,))

    def _call_filters(self, calls: list[Any]) -> Iterator[ToolCallFilter]:
        yield ToolCallFilter()
        for tool in sorted({call.tool_name for call in calls})[:10]:
            yield ToolCallFilter(tool=tool)
        for kind in ToolKind:
            yield ToolCallFilter(kind=kind)
        for state in ToolState:
            yield ToolCallFilter(state=state)
        for failed in (True, False):
            yield ToolCallFilter(failed=failed)
        for call in calls[:: max(1, len(calls) // 6)]:
            yield ToolCallFilter(session=call.session_id)
            yield ToolCallFilter(call=call.tool_call_id)
            yield ToolCallFilter(message=call.message_id)
            yield ToolCallFilter(agent=call.agent, since=call.started_at)
            yield ToolCallFilter(until=call.started_at)
            if call.path:
                yield ToolCallFilter(path=call.path)

    def _of_files(self) -> Iterator[Question]:
        for wanted in (
            *(FileFilter(), FileFilter(changed=True), FileFilter(changed=False), FileFilter(text=".MD")),
            *(FileFilter(session=session_id) for session_id in self._ids[::20]),
            *(FileFilter(agent=session.agent) for session in self._sessions[::20]),
        ):
            yield Question("touched_files", (wanted,))
            yield Question("touched_files", (wanted,), {"limit": 3})
        for touched in self._store.touched_files(limit=25):
            yield Question("file_history", (touched.path,))
            yield Question("file_history", (Path(touched.path).name,), {"changed": True, "limit": 2})
        yield Question("file_history", ("no such file",))

    def _of_usage(self) -> Iterator[Question]:
        for by in USAGE_BY:
            yield Question("usage", (by,), {"zone": KATHMANDU})
            for then_by in USAGE_BY:
                yield Question("usage", (by,), {"then_by": then_by})
        for wanted in (
            *(UsageFilter(agent=agent) for agent in sorted({session.agent for session in self._sessions})),
            *(UsageFilter(session=session_id) for session_id in self._ids[::15]),
            *(UsageFilter(model=model) for model in sorted({m for s in self._sessions for m in s.models})[:6]),
            *(UsageFilter(project=s.project.path) for s in self._sessions[::25] if s.project),
            *(UsageFilter(since=time) for time in self._times()),
            *(UsageFilter(until=time) for time in self._times()),
            *(UsageFilter(user="ann"), UsageFilter(team="core"), UsageFilter(task="t1")),
        ):
            yield Question("usage", ("session",), {"filter": wanted})
            yield Question("usage", ("day",), {"filter": wanted, "zone": BERLIN, "active": True})
        for time in self._times():
            yield Question("spending", (time,))
        for wanted in (
            *(InsightFilter(agent=agent) for agent in sorted({session.agent for session in self._sessions})),
            *(InsightFilter(since=time) for time in self._times()),
            *(InsightFilter(until=time) for time in self._times()),
            *(InsightFilter(project=s.project.path) for s in self._sessions[::40] if s.project),
            InsightFilter(),
        ):
            yield Question("insights", (wanted,))
        yield Question("insights", kwargs={"zone": KATHMANDU})

    def _times(self) -> list[datetime]:
        times = sorted(session.updated_at for session in self._sessions if session.updated_at)
        return [*times[:: max(1, len(times) // 4)], datetime.now(UTC) + timedelta(days=1)]

    def _of_sources(self) -> Iterator[Question]:
        for wanted in (
            *(DiagnosticFilter(), DiagnosticFilter(severity="error"), DiagnosticFilter(severity="note")),
            *(DiagnosticFilter(agent=agent) for agent in sorted({session.agent for session in self._sessions})),
        ):
            yield Question("diagnostics", (wanted,), {"limit": 2})
        for kind in self._store.unknown_kinds():
            yield Question("unknown_record", (kind.agent, kind.kind))
        yield Question("unknown_record", ("nobody", "nothing"))
        for source in self._store.sources()[::20]:
            yield Question("record", (source.path, 0, min(100, source.size)))
        yield Question("record", ("/nowhere", 0, 1))
        yield Question("blob", ("00" * 32,))
        yield Question("blob", ("no hash",))

    def _of_runs(self) -> Iterator[Question]:
        yield Question("runs", kwargs={"limit": 2})
        yield Question("runs", (RunFilter(status="nothing"),))
        for status in RUN_STATUSES:
            yield Question("runs", (RunFilter(status=status),))
        for run in self._store.runs(limit=20).items:
            yield Question("run", (run.id[:6],))
            yield Question("run_messages", (run.id,), {"limit": 2})
            yield Question("runs", (RunFilter(session=run.session_id, since=run.created_at),))
        yield Question("run", ("nobody",))


def some_questions(store: Store, every: int, most: int) -> list[Question]:
    """Questions about every so many-th session, of each method at most so many, evenly chosen."""
    questions = Questions(store, every)
    by_method: defaultdict[str, list[Question]] = defaultdict(list)
    for question in (*questions, *questions.of_messages()):
        by_method[question.method].append(question)
    return [each for found in by_method.values() for each in found[:: -(-len(found) // most)]]


def restored(store: Store, session_id: str) -> dict[str, bytes]:
    """The files that restoring a session writes, by their paths."""
    with TemporaryDirectory() as folder:
        return {
            str(file.path.relative_to(folder)): file.path.read_bytes()
            for file in store.restore(session_id, Path(folder))
        }
