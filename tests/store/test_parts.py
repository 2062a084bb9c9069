"""Parts have ids: unique, and the same after another sync, a rebuild, and when the log goes on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.agent_cases import CASES, names, one_per_package
from turnlog.errors import NotFoundError
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart
from turnlog.model.codec import to_json
from turnlog.model.message import part_ids
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync


def text(id: str | None) -> TextPart:
    return TextPart(id=id, text="x")


@pytest.mark.parametrize(
    ("own", "ids"),
    [
        ((), []),
        (("m.0", "m.2"), ["m.0", "m.2"]),
        ((None, None), ["m.p0", "m.p1"]),
        (("m.0", None, "m.3", None), ["m.0", "m.p0", "m.3", "m.p1"]),
        (("weather", "a.b"), ["m.weather", "m.a.b"]),
        (("x", "x", "x"), ["m.x", "m.x~1", "m.x~2"]),
        ((None, "p0"), ["m.p0~1", "m.p0"]),
        (("", "n.0"), ["m.p0", "m.n.0"]),
    ],
)
def test_ids_of_the_parts_of_a_message(own: tuple[str | None, ...], ids: list[str]) -> None:
    """R-S26."""
    assert part_ids(Message(id="m", role="user", parts=tuple(map(text, own)))) == ids


def parts_of(path: Path) -> dict[str, tuple[str, Part]]:
    """Id -> its message and content, of every part of a store; each is read by its id."""
    found: dict[str, tuple[str, Part]] = {}
    with open_store(path) as store:
        for session in store.sessions(SessionFilter(subagents=True), limit=200).items:
            for placed in store.messages(session.id):
                message = store.message(placed.message.id, structured=True)
                ids = part_ids(message)
                assert max(Counter(ids).values(), default=1) == 1
                for sequence, id in enumerate(ids):
                    part = store.part(id)
                    assert (part.id, part.message_id, part.sequence) == (id, message.id, sequence)
                    assert part.part == message.parts[sequence]
                    # Of another message only where it is the same message in a fork.
                    assert found.setdefault(id, (message.id, part.part))[0] == message.id
    return found


@pytest.mark.parametrize("name", names(one_per_package()))
def test_they_stay_after_another_sync_and_a_rebuild(name: str, home: Path, tmp_path: Path) -> None:
    """R-S26: and each content can be read by its id."""
    shutil.copytree(LOGS / name, home / CASES[name].home)
    path = tmp_path / "turnlog.db"
    sync(path)
    before = parts_of(path)
    assert len(before) > 5
    for log in (home / CASES[name].home).rglob("*"):
        log.touch()
    sync(path)
    assert parts_of(path) == before
    rebuild(path)
    assert parts_of(path) == before


@pytest.mark.parametrize("name", ["claude-code", "codex", "klaude"])
def test_they_stay_when_the_log_goes_on(name: str, home: Path, tmp_path: Path) -> None:
    """R-S26: a part keeps its id, its message and its type, wherever the log was read before its end."""
    logs = {log: log.read_bytes() for log in LOGS.glob(f"{name}/**/*.jsonl")}
    assert logs
    seen: dict[str, tuple[str, str]] = {}
    path = tmp_path / "turnlog.db"
    for sixth in range(1, 7):
        for log, data in logs.items():
            lines = data.splitlines(keepends=True)
            copy = home / CASES[name].home / log.relative_to(LOGS / name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(b"".join(lines[: len(lines) * sixth // 6]))
        sync(path)
        now = {id: (message_id, part.type) for id, (message_id, part) in parts_of(path).items()}
        assert seen.items() <= now.items()
        seen = now
    sync(tmp_path / "at once.db")
    assert {id: (message_id, part.type) for id, (message_id, part) in parts_of(tmp_path / "at once.db").items()} == seen


def test_they_stay_when_a_program_writes_more(tmp_path: Path) -> None:
    """R-S26: also of large contents, which are whole."""
    picture, long = FilePart(media_type="image/png", data=bytes(200_000)), TextPart(text="x" * 100_000)
    call = ToolCallPart(tool_call_id="c", tool_name="t", input=to_json({"a": 1}))
    message = Message(id="a.b", role="assistant", parts=(long, picture))
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        store.save_messages("my-bot:1", [message, Message(id="a", role="user", parts=(text("b.p0"), text("q")))])
        assert store.part("a.b.p0").part == long
        store.save_messages("my-bot:1", [replace(message, parts=(*message.parts, text("new"), text(None)))])
        store.save_tool_call("my-bot:1", "a.b", call)
        assert [store.part(f"a.b.{name}").sequence for name in ("p0", "p1", "new", "p2", "p3")] == [0, 1, 2, 3, 4]
        assert store.part("a.b.p1").part == picture
        assert store.part("a.q", session_id="my-bot:1").message_id == "a"


@pytest.mark.parametrize("wanted", [{"part_id": "a.p1"}, {"part_id": "a"}, {"part_id": "."}, {"part_id": "." * 9999}])
def test_what_is_not_there(tmp_path: Path, wanted: dict[str, Any]) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        store.save_messages("my-bot:1", [Message(id="a", role="user", parts=(text(None),))])
        with pytest.raises(NotFoundError):
            store.part(**wanted)
        with pytest.raises(NotFoundError):
            store.part("a.p0", session_id="my-bot:2")
