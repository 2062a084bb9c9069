"""Pages of UI messages: full, in order, and never cut where things belong together (R-H13 to R-H17)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from support.plain_agent import Log
from support.plain_store import read_home
from turnlog import open_store
from turnlog.aisdk import DynamicToolUIPart, TextUIPart, UIMessage, encode, validate_ui_messages
from turnlog.aisdk.convert import to_ui_messages
from turnlog.chat import loading
from turnlog.chat.loading import UIMessageStore, load_all_ui_messages, load_ui_messages
from turnlog.errors import NotFoundError
from turnlog.model import Fate, Message, Origin, TextPart, ToolCallPart, ToolResult, ToolResultEvent
from turnlog.model.codec import to_json
from turnlog.store.base import Store

SESSION = "plain:chat"
LONG = "a line of a long output\n" * 4000


def prompt(id: str, text: str, origin: Origin = Origin.PROMPT) -> Message:
    role = "developer" if origin is Origin.HARNESS else "user"
    return Message(id=id, role=role, origin=origin, parts=(TextPart(text=text),))


def answer(id: str, *parts: TextPart | ToolCallPart) -> Message:
    return Message(id=id, role="assistant", parts=parts)


def call(id: str) -> ToolCallPart:
    return ToolCallPart(tool_call_id=id, tool_name="Bash", input=to_json({"command": id}))


def write(log: Log) -> None:
    """Four turns; results come late, after other messages, and one nobody asked for."""
    log.session(titles={"generated": "A chat"})
    for turn in range(4):
        log.message(prompt(f"u{turn}", f"prompt {turn}"), turn=turn + 1)
        log.message(prompt(f"d{turn}", "be nice", Origin.HARNESS), turn=turn + 1)
        log.message(
            answer(f"a{turn}.1", TextPart(text="I look."), call(f"c{turn}.1"), call(f"c{turn}.2")), turn=turn + 1
        )
        log.message(prompt(f"d{turn}.1", "go on", Origin.HARNESS), turn=turn + 1)
        log.message(answer(f"a{turn}.2", TextPart(text="Done.")), turn=turn + 1)
        for number in (2, 1):
            content = (TextPart(text=LONG if turn == 2 else f'{{"number": {number}}}'),)
            name = f"c{turn}.{number}"
            log.result(name, ToolResult(id=f"{name}.r", content=content), message_id=f"a{turn}.1")
    log.event(ToolResultEvent(tool_call_id="nobody", result=ToolResult(id="orphan")))
    log.message(answer("old", TextPart(text="left")), turn=4, fate=Fate.REWOUND)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "home").mkdir()
    write(Log(tmp_path / "home", "chat"))
    read_home(tmp_path / "turnlog.db", tmp_path / "home")
    return open_store(tmp_path / "turnlog.db")


def ids(messages: list[UIMessage]) -> list[str]:
    return [message.id for message in messages]


def outputs(messages: list[UIMessage]) -> list[Any]:
    return [part.output for message in messages for part in message.parts if isinstance(part, DynamicToolUIPart)]


ALL = ["u0", "a0.1", "u1", "a1.1", "u2", "a2.1", "u3", "a3.1"]


def test_a_page_by_offset_and_limit(store: Store) -> None:
    """R-H13."""
    page = load_ui_messages(store, SESSION, 2, 3)
    assert (ids(page.messages), page.has_more) == (ALL[2:5], True)
    last = load_ui_messages(store, SESSION, offset=6)
    assert (ids(last.messages), last.has_more, last.next_cursor) == (ALL[6:], False, None)
    assert ids(load_ui_messages(store, SESSION).messages) == ALL
    assert load_ui_messages(store, SESSION, 100).messages == []
    nothing = load_ui_messages(store, SESSION, limit=0)
    assert (nothing.messages, nothing.has_more) == ([], True)


@pytest.mark.parametrize("merge_steps", [True, False])
@pytest.mark.parametrize("developer", ["data", "user", "omit"])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 50])
def test_pages_put_together_are_the_whole(store: Store, limit: int, developer: Any, merge_steps: bool) -> None:
    """R-H14, R-H15: by offset and by cursor, whatever the size of a page."""
    options: dict[str, Any] = {"developer": developer, "merge_steps": merge_steps}
    stored = [without_places(placed.message) for placed in store.messages(SESSION, fates=loading.SHOWN_FATES)]
    whole = encode(to_ui_messages(stored, **options).messages)
    by_offset: list[UIMessage] = []
    by_cursor: list[UIMessage] = []
    cursor: str | None = None
    while True:
        page = load_ui_messages(store, SESSION, len(by_offset), limit, **options)
        follow = load_ui_messages(store, SESSION, limit=limit, cursor=cursor, **options)
        assert len(page.messages) == limit or not page.has_more
        by_offset += page.messages
        by_cursor += follow.messages
        cursor = follow.next_cursor
        if not page.has_more:
            break
    assert cursor is None
    assert encode(by_offset) == encode(by_cursor) == whole
    assert encode(load_all_ui_messages(store, SESSION, **options)) == whole


def without_places(message: Message) -> Message:
    """As its records say it: where a result arrived in a session is no part of a message."""
    parts = [
        replace(part, results=tuple(replace(result, sequence=None) for result in part.results))
        if isinstance(part, ToolCallPart)
        else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))


@pytest.mark.parametrize("limit", [1, 3])
def test_results_stand_with_their_calls_on_every_page(store: Store, limit: int) -> None:
    """R-H15."""
    found: list[Any] = []
    for offset in range(0, len(ALL), limit):
        found += outputs(load_ui_messages(store, SESSION, offset, limit).messages)
    assert found == [{"number": 1}, {"number": 2}] * 2 + [LONG, LONG] + [{"number": 1}, {"number": 2}]


def test_large_contents_are_whole_or_owned_up_to(store: Store) -> None:
    page = load_ui_messages(store, SESSION, 5, 1, resolve_blobs=False)
    previews = cast("list[str]", outputs(page.messages))
    assert all(len(preview) == 8000 for preview in previews)
    assert [loss.feature for loss in page.losses] == ["large-text", "large-text"]
    assert load_ui_messages(store, SESSION, 5, 1).losses == ()


def test_ids_are_counted_over_the_session(store: Store) -> None:
    """R-H12: not over the page."""

    def numbered(index: int, message: Message) -> str:
        return f"{index}:{message.id}"

    first = load_ui_messages(store, SESSION, 2, 2, generate_id=numbered)
    assert ids(first.messages) == ["2:u1", "3:a1.1"]
    following = load_ui_messages(store, SESSION, limit=1, cursor=first.next_cursor, generate_id=numbered)
    assert ids(following.messages) == ["4:u2"]


def test_a_result_without_its_call_is_reported_on_the_page_where_it_came(store: Store) -> None:
    """R-H9."""
    assert load_ui_messages(store, SESSION, 0, 7).losses == ()
    (loss,) = load_ui_messages(store, SESSION, 7).losses
    assert loss.feature == "orphan-result"
    assert "nobody" in loss.reason


def test_branches_that_were_left_are_shown_where_asked_for(store: Store) -> None:
    shown = load_ui_messages(store, SESSION, 7, fates=set(Fate)).messages
    assert [part.text for part in shown[-1].parts if isinstance(part, TextUIPart)][-1] == "left"


def test_a_cursor_stays_good_while_the_session_grows(store: Store, tmp_path: Path) -> None:
    cursor = load_ui_messages(store, SESSION, 0, 7).next_cursor
    Log(tmp_path / "home", "chat").message(answer("a3.3", TextPart(text="One more thing.")), turn=4)
    read_home(tmp_path / "turnlog.db", tmp_path / "home")
    (grown,) = load_ui_messages(store, SESSION, cursor=cursor).messages
    assert grown.id == "a3.1"
    assert [part.type for part in grown.parts].count("step-start") == 3


def test_lists_longer_than_what_is_read_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_CHUNK", 3)
    monkeypatch.setattr(loading, "_PAGE", 2)
    assert ids(load_all_ui_messages(store, SESSION)) == ALL
    assert ids(load_ui_messages(store, SESSION, 3, 2).messages) == ALL[3:5]


def test_one_object_offers_both(store: Store) -> None:
    """R-H16."""
    chats = UIMessageStore(store, version=6, include_reasoning=False)
    assert ids(chats.load(SESSION, 1, 2).messages) == ALL[1:3]
    assert ids(chats.load_all(SESSION)) == ALL


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_page_may_be_what_a_chat_begins_with(store: Store, version: int) -> None:
    """R-H17."""
    messages = load_all_ui_messages(store, SESSION, version=version)
    assert len(validate_ui_messages(encode(messages), version=version)) == len(ALL)


@pytest.mark.parametrize("cursor", ["", "x", "1", "1.2", "a.1.m", "1.b.m", "-1.2.m", f"{'9' * 30}.1.m"])
def test_cursors_that_are_none(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        load_ui_messages(store, SESSION, cursor=cursor)


def test_questions_that_cannot_be_answered(store: Store) -> None:
    with pytest.raises(NotFoundError):
        load_ui_messages(store, "plain:nothing")
    with pytest.raises(NotFoundError):
        load_ui_messages(store, SESSION, cursor="3.0.gone")
    with pytest.raises(ValueError, match="not at both"):
        load_ui_messages(store, SESSION, 1, cursor="0.0.u0")
    with pytest.raises(ValueError, match="from 0 on"):
        load_ui_messages(store, SESSION, -1)
