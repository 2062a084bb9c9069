"""When a turn has ended, and what is told of it while it grows."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import pytest

from support.hook_recordings import recording
from support.plain_agent import Log
from support.plain_store import read_home
from turnlog.aisdk import read_ui_message
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.sse import decode_chunks
from turnlog.chat import Tail, load_all_ui_messages, open_tail, tail
from turnlog.errors import NotFoundError
from turnlog.model import (
    Approval,
    InterruptEvent,
    Message,
    Origin,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
)
from turnlog.model.parts import Part
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.sync.spools import spool_event
from turnlog.sync.syncer import Syncer

SESSION = "plain:main"


class Growing:
    """A log that grows, and the store that has read it."""

    def __init__(self, folder: Path) -> None:
        (folder / "home").mkdir()
        self._folder = folder
        self.log = Log(folder / "home", "main")
        self.time = datetime.now(UTC)

    def message(self, id: str, role: str, *parts: Part, stop: StopReason | None = None) -> None:
        origin = Origin.PROMPT if role == "user" else None
        made = Message(id=id, role=role, origin=origin, parts=parts, stop_reason=stop, created_at=self.time)  # pyright: ignore[reportArgumentType] a role
        self.log.message(made)

    def read(self) -> None:
        read_home(self._folder / "turnlog.db", self._folder / "home")


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    found = Growing(tmp_path)
    found.message("u", "user", TextPart(text="hi"))
    return found


@pytest.fixture
def store(growing: Growing, tmp_path: Path) -> Iterator[Store]:
    growing.read()
    with open_store(tmp_path / "turnlog.db") as found:
        yield found


def call(id: str = "c", *results: ToolResult, asks: bool = False) -> ToolCallPart:
    state = ToolState.OUTPUT_AVAILABLE if results else ToolState.INPUT_AVAILABLE
    state = ToolState.APPROVAL_REQUESTED if asks else state
    approval = Approval(id="q") if asks else None
    return ToolCallPart(tool_call_id=id, tool_name="Bash", state=state, approval=approval, results=results)


DONE = ToolResult(id="r", content=(TextPart(text="out"),))
TEXT = TextPart(text="done")


def is_followed(store: Store) -> bool:
    return asyncio.run(open_tail(store, SESSION)) is not None


@pytest.mark.parametrize(
    ("parts", "stop", "minutes", "followed"),
    [
        ((), None, 0, True),
        ((TEXT,), "stop", 0, False),
        ((TEXT,), "length", 0, False),
        ((TEXT,), "aborted", 0, False),
        ((TEXT,), "tool_use", 0, True),
        ((TEXT, call()), "tool_use", 0, True),
        ((TEXT, call()), "stop", 0, True),
        ((call("c", DONE),), "tool_use", 0, True),
        ((call("c", DONE),), None, 5, True),
        ((call("c"),), None, 5, True),
        ((call("c"),), None, 20, False),
        ((TEXT,), None, 0, True),
        ((TEXT,), None, 1, False),
        ((call(asks=True),), None, 0, False),
    ],
)
def test_a_turn_goes_on_until_something_says_that_it_ended(
    growing: Growing, store: Store, parts: tuple[Part, ...], stop: StopReason, minutes: float, followed: bool
) -> None:
    if parts:
        growing.message("a", "assistant", *parts, stop=stop)
    growing.read()
    assert (Tail(store, SESSION).read(timedelta(minutes=minutes)).end is None) is followed


def test_an_interruption_ends_a_turn(growing: Growing, store: Store) -> None:
    growing.message("a", "assistant", call())
    growing.read()
    assert is_followed(store)
    growing.log.event(InterruptEvent(id="i", created_at=growing.time))
    growing.read()
    assert not is_followed(store)


CODEX = Path(__file__).parent.parent / "data" / "codex" / "scenarios"


@pytest.mark.parametrize("scenario", ["tui", "interrupt", "errors"])
def test_codex_says_itself_when_a_turn_begins_and_ends(home: Path, scenario: str) -> None:
    """No silence is waited for, and a text in the middle of a turn ends none, however long the model thinks then."""
    recorded = sorted((CODEX / scenario).rglob("rollout-*.jsonl"))[0]
    log, path = home / ".codex" / recorded.relative_to(CODEX / scenario), home / "turnlog.db"
    log.parent.mkdir(parents=True)
    ended: str | None = None
    seen = set[str]()
    with Syncer(path) as syncer:
        for line in recorded.read_bytes().splitlines(keepends=True):
            with log.open("ab") as file:
                file.write(line)
            kind = str(json.loads(line)["payload"].get("type"))
            if kind in _CODEX_ENDS:
                ended = _CODEX_ENDS[kind]
            syncer.scan()
            with open_store(path) as store:
                (session,) = store.sessions().items
                if session.counts.prompts:
                    seen.add(str(ended))
                    told = Tail(store, session.id).read(timedelta(minutes=1)).end
                    assert (None if told is None else type(told).__name__) == ended, line[:200]
    assert len(seen) > 1


_CODEX_ENDS = {"task_started": None, "task_complete": "RunFinish", "turn_aborted": "Abort"}


GEMINI = recording("gemini-cli")


def gemini_timeline() -> list[tuple[float, str, bytes]]:
    """What the real program wrote into its log, and what it told its hooks, in the order in which it did."""
    (log,) = (source.path for source in GEMINI.logs() if "chats" in source.path)
    told, now = list[tuple[float, str, bytes]](), inf
    for line in reversed(Path(log).read_bytes().splitlines(keepends=True)):
        record = json.loads(line)
        at = record.get("timestamp") or record.get("$set", record).get("lastUpdated")
        if (
            at is not None and "toolCalls" not in record
        ):  # with its calls a message is written again, when they have run
            now = datetime.fromisoformat(at).timestamp() * 1000
        told.append((now, "log", line))
    hooks = [json.loads(line) for line in GEMINI.lines]
    told += [(hook["at"], hook["event"]["hook_event_name"], json.dumps(hook["event"]).encode()) for hook in hooks]
    return sorted(reversed(told), key=lambda each: each[0])


def test_hooks_end_turns_of_gemini_at_once_and_keep_others_open(home: Path) -> None:
    """Without them a text that a call follows is like the last one until the call has run."""
    name = next(event["session_id"] for event in GEMINI.events)
    log, path = (
        home / ".gemini" / "tmp" / "work" / "chats" / f"session-2026-11-21T02-14-{name[:8]}.jsonl",
        home / "t.db",
    )
    log.parent.mkdir(parents=True)
    ended, seen = True, Counter[tuple[str, bool]]()
    with Syncer(path) as syncer:
        for at, kind, data in gemini_timeline():
            if kind == "log":
                with log.open("ab") as file:
                    file.write(data)
            else:
                spool_event(path, "gemini-cli", data, at)
                ended = {"BeforeAgent": False, "AfterAgent": True}.get(kind, ended)
            syncer.scan()
            if kind not in ("log", "SessionStart"):
                with open_store(path) as store:
                    silence = timedelta(0) if ended else timedelta(minutes=1)
                    end = Tail(store, f"gemini-cli:{name}").read(silence).end
                    assert (end is not None) is ended, (kind, end)
                    seen[kind, ended] += 1
    assert seen["BeforeTool", False] == 3
    assert seen["AfterAgent", True] == 2


def test_an_unknown_session_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError):
        asyncio.run(open_tail(store, "plain:none"))


def test_what_was_followed_is_what_is_stored(growing: Growing, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-O24, R-O26: each thing once, in order, as it comes; results also of calls that are long past."""
    monkeypatch.setattr(tail, "POLL_SECONDS", 0.001)

    def steps() -> Iterator[None]:
        growing.message("a1", "assistant", TextPart(text="Let"))
        yield
        growing.message("a1", "assistant", TextPart(text="Let me"), call("c1"), call("c2"))
        yield
        growing.log.result("c2", ToolResult(id="r2", content=(TextPart(text="two"),)))
        yield
        growing.message("a2", "assistant", TextPart(text="Meanwhile"), call("c3", DONE))
        growing.log.result("c1", ToolResult(id="r1", status="error", error_text="one"))
        yield
        growing.message("a3", "assistant", TextPart(text="Done."), stop="stop")
        yield

    growing_on = steps()

    async def wait(_: float) -> bool:
        next(growing_on, None)
        growing.read()
        return True

    async def run() -> bytes:
        found = await open_tail(store, SESSION)
        assert found is not None
        return b"".join([piece async for piece in found.stream(wait=wait)])

    read = read_ui_message(decode_chunks(asyncio.run(run())))
    assert read.error is None
    told, kept = to_plain(read.message), to_plain(load_all_ui_messages(store, SESSION)[-1])
    assert told["id"] == kept["id"] == "a1"
    assert [_shown(part) for part in told["parts"]] == [_shown(part) for part in kept["parts"]]
    assert [part.get("toolCallId") for part in told["parts"]].count("c1") == 1


def _shown(part: dict[str, object]) -> tuple[object, ...]:
    keys = ("text", "toolCallId", "output", "errorText", *(["state"] if "toolCallId" in part else []))
    return part["type"], *[part.get(key) for key in keys]
