"""Exports in which one id stands for many messages or sessions: nothing is mixed, and it is told."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support.opencode_files import AGENT, store_contents
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.model import Message, TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.importing import import_file

CREATED = 1_795_255_200_000
ANNA, BERT = "ses_dfd1648610011Isvh9E80uUjvg", "ses_dfd1648620022Isvh9E80uUjvg"
FIRST, SECOND, THIRD = (f"msg_202e9b{number}000ffIsvh9E80uUjvg" for number in (1, 2, 3))


def message(message_id: str, text: str, at: int, role: str = "user", **info: Any) -> dict[str, Any]:
    return {
        "info": {"id": message_id, "role": role, "time": {"created": CREATED + at}, **info},
        "parts": [{"id": f"prt_{text}", "messageID": message_id, "type": "text", "text": text}],
    }


def export(session: str, *messages: dict[str, Any], began: int = 0) -> bytes:
    info = {"id": session, "title": "New", "version": "1.18.33", "time": {"created": CREATED + began}}
    return json.dumps({"info": info, "messages": messages}).encode()


def read(data: bytes) -> Changes:
    return fold_bytes(AGENT, Source(agent="opencode", path="/x/export.json", root="/x", appendable=False), data)


def texts(messages: list[Message]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]


def said(changes: Changes) -> list[str]:
    return texts([change.message for change in changes.messages])


def test_two_messages_of_one_id_stay_two() -> None:
    """R-C3: the second used to take the place of the first."""
    changes = read(export(ANNA, message(FIRST, "one", 1), message(FIRST, "two", 2), message(SECOND, "three", 3)))
    assert said(changes) == ["one", "two", "three"]
    assert changes.messages[0].message.id == FIRST
    assert len({change.message.id for change in changes.messages}) == 3
    [note] = changes.diagnostics
    assert (note.severity, note.json_path) == ("note", "$.messages[1].info.id")
    assert FIRST in note.reason
    assert changes.messages[1].message.id in note.reason


def test_a_message_that_is_there_twice_word_for_word_counts_once() -> None:
    changes = read(export(ANNA, message(FIRST, "one", 1), message(FIRST, "one", 1)))
    assert said(changes) == ["one"]
    [note] = changes.diagnostics
    assert note.reason.endswith("it counts once")


@pytest.mark.parametrize("redacted", ["msg_REDACTED", "[redacted]", "msg_xxxxxxxx", "msg_", ""])
def test_a_redacted_id_of_a_message_counts_in_its_own_session(redacted: str, tmp_path: Path) -> None:
    """R-C13: in any order, the store keeps both histories apart."""
    exports = [
        export(ANNA, message(redacted, "Anna asks", 1), message(redacted, "Anna hears", 2, "assistant")),
        export(BERT, message(redacted, "Bert asks", 1), message(redacted, "Bert hears", 2, "assistant")),
    ]
    assert all(len(read(data).diagnostics) == 2 for data in exports)
    assert histories(tmp_path, exports) == [["Anna asks", "Anna hears"], ["Bert asks", "Bert hears"]]


@pytest.mark.parametrize("name", ["msg_001", "msg_1", "msg_user", "id", "1", "msg_000000000000" + 14 * "0"])
def test_an_id_that_opencode_did_not_make_counts_in_its_own_session(name: str, tmp_path: Path) -> None:
    """R-C13: two sessions whose messages are counted from one do not share them."""
    exports = [
        export(ANNA, message(name, "Anna asks", 1), message(SECOND, "Anna hears", 2, "assistant", parentID=name)),
        export(BERT, message(name, "Bert asks", 1), message(THIRD, "Bert hears", 2, "assistant", parentID=name)),
    ]
    for session, data in zip((ANNA, BERT), exports, strict=True):
        changes = read(data)
        [note] = changes.diagnostics
        assert (note.severity, note.json_path) == ("note", "$.messages[0].info.id")
        assert repr(name) in note.reason
        assert f"{session}:{name}" in note.reason
        assert changes.messages[1].placement.parent_id == changes.messages[0].message.id
    assert histories(tmp_path, exports) == [["Anna asks", "Anna hears"], ["Bert asks", "Bert hears"]]


@pytest.mark.parametrize("redacted", ["ses_REDACTED", "ses_[id]", "ses_00000000"])
def test_a_redacted_id_of_a_session_does_not_join_two_sessions(redacted: str, tmp_path: Path) -> None:
    exports = [
        export(redacted, message(FIRST, "Anna asks", 1)),
        export(redacted, message(SECOND, "Bert asks", 5), began=4),
    ]
    assert all(read(data).diagnostics[0].json_path == "$.info.id" for data in exports)
    assert histories(tmp_path, exports) == [["Anna asks"], ["Bert asks"]]


def test_a_later_export_of_a_redacted_session_is_the_same_session(tmp_path: Path) -> None:
    exports = [
        export("ses_REDACTED", message(FIRST, "one", 1)),
        export("ses_REDACTED", message(FIRST, "one", 1), message(SECOND, "two", 2)),
    ]
    assert histories(tmp_path, exports) == [["one", "two"]]


def test_what_a_redacted_export_says_of_its_turns_is_kept() -> None:
    answer = message("msg_redacted_2", "hears", 2, "assistant", parentID="msg_redacted_1")
    changes = read(export(ANNA, message("msg_redacted_1", "asks", 1), answer, message("msg_redacted_3", "again", 3)))
    assert [change.placement.turn for change in changes.messages] == [1, 1, 2]
    assert changes.messages[1].placement.parent_id == changes.messages[0].message.id


def histories(folder: Path, exports: list[bytes]) -> list[list[str]]:
    """What each session of a store says that has imported the exports, which no order of them changes."""
    paths = [folder / f"{number}.json" for number in range(len(exports))]
    for path, data in zip(paths, exports, strict=True):
        path.write_bytes(data)
        assert detect(path).agent == "opencode"
    stores = [folder / f"{number}.db" for number, _ in enumerate(permutations(paths))]
    for store, order in zip(stores, permutations(paths), strict=True):
        for path in order:
            import_file(store, path)
    assert all(store_contents(store) == store_contents(stores[0]) for store in stores)
    with open_store(stores[0]) as opened:
        ids = [session.id for session in opened.sessions(SessionFilter()).items]
        return sorted(texts([placed.message for placed in opened.messages(session)]) for session in ids)
