"""A keeper that has loaded a chat before reads only what is new of it, and still has what the store has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from turnlog.aisdk import TextUIPart, UIMessage, parse_ui_messages
from turnlog.chat import NativeKeeper, session_id_of
from turnlog.chat import keepers as keepers_module
from turnlog.chat import loaded_chats as loaded_chats_module
from turnlog.chat.conversion import RUN_KEY, SESSION_KEY
from turnlog.model import Message, TextPart
from turnlog.store import open_store
from turnlog.store.base import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "turnlog.db", create=True) as opened:
        yield opened


@pytest.fixture
def pages_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers_module, "_PAGE", 5)


def load(keeper: NativeKeeper) -> list[UIMessage]:
    return asyncio.run(keeper.load("c"))


def save(keeper: NativeKeeper, messages: Sequence[UIMessage], retracted: Sequence[str] = ()) -> None:
    asyncio.run(keeper.save("c", messages, retracted))


def message(number: int, text: str = "", **fields: Any) -> UIMessage:
    role = "assistant" if number % 2 else "user"
    parts = [{"type": "text", "text": text or f"text {number}"}]
    return parse_ui_messages([{"id": f"m{number}", "role": role, "parts": parts, **fields}])[0]


def loaded_anew(store: Store) -> list[UIMessage]:
    return load(NativeKeeper(store))


class Reads:
    """Counts the bodies of messages that are read from a store."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        bodies = store.bodies

        def counted(*args: Any, **named: Any) -> dict[str, bytes]:
            found = bodies(*args, **named)
            self.count += len(found)
            return found

        monkeypatch.setattr(store, "bodies", counted)


@pytest.mark.usefixtures("pages_of_five")
def test_only_the_end_of_a_loaded_chat_is_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = NativeKeeper(store)
    save(keeper, [message(number) for number in range(100)])
    assert len(load(keeper)) == 100
    reads = Reads(store, monkeypatch)
    assert len(load(keeper)) == 100
    assert reads.count == 0
    save(keeper, [message(100)])
    assert load(keeper) == loaded_anew(store)
    assert 0 < reads.count - 101 <= 10


@pytest.mark.usefixtures("pages_of_five")
def test_what_another_process_changes_is_seen(store: Store, tmp_path: Path) -> None:
    keeper = NativeKeeper(store)
    save(keeper, [message(number) for number in range(30)])
    load(keeper)
    with open_store(tmp_path / "turnlog.db") as other:
        [stored] = [
            each for each in other.messages(session_id_of("c")) if each.message.parts[0] == TextPart(text="text 11")
        ]
        changed = Message(id=stored.message.id, role="assistant", parts=(TextPart(text="edited"),))
        other.save_messages(session_id_of("c"), [changed])
    assert [part.text for part in load(keeper)[11].parts if isinstance(part, TextUIPart)] == ["edited"]
    assert load(keeper) == loaded_anew(store)


@pytest.mark.usefixtures("pages_of_five")
@pytest.mark.parametrize("seed", range(4))
def test_it_is_always_the_chat_of_the_store(store: Store, seed: int) -> None:
    """Whatever is added, changed and retracted, by this keeper or by another one."""
    dice = random.Random(seed)
    keeper, other = NativeKeeper(store), NativeKeeper(store)
    number = 0
    for round_ in range(40):
        writer = dice.choice([keeper, other])
        known = [int(each.id[1:]) for each in load(writer)]
        new = list(range(number, number + dice.randrange(4)))
        number += len(new)
        changed = dice.sample(known, min(len(known), dice.randrange(2)))
        retracted = dice.sample(known, min(len(known), dice.choice([0, 0, 1, 3])))
        kept = [each for each in changed if each not in retracted]
        messages = [message(each, f"changed {round_}") for each in kept] + [message(each) for each in new]
        save(writer, messages, [f"m{each}" for each in retracted])
        assert load(keeper) == loaded_anew(store)


def test_a_chat_that_was_deleted_is_gone(store: Store) -> None:
    keeper = NativeKeeper(store)
    save(keeper, [message(0)])
    load(keeper)
    store.forget(session_id_of("c"))
    assert load(keeper) == []


@pytest.mark.usefixtures("pages_of_five")
def test_a_chat_that_an_agent_answered_is_read_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages may move to the log of the agent, of which no list of changes tells."""
    keeper = NativeKeeper(store)
    answer = message(21, metadata={SESSION_KEY: "claude-code:s", RUN_KEY: "r"})
    save(keeper, [*(message(number) for number in range(21)), answer])
    load(keeper)
    reads = Reads(store, monkeypatch)
    load(keeper)
    assert reads.count == 22


@pytest.mark.usefixtures("pages_of_five")
def test_large_chats_push_out_those_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_chats_module, "_MOST_BYTES", 3000)
    keeper = NativeKeeper(store)
    save(keeper, [message(number) for number in range(20)])
    load(keeper)
    asyncio.run(keeper.save("d", [message(0, "long " * 300)]))
    reads = Reads(store, monkeypatch)
    asyncio.run(keeper.load("d"))
    load(keeper)
    assert reads.count == 21
