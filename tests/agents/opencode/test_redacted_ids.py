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
ANNA, BERT = "ses_e027396ffffeIsvh9E80uUjvg2", "ses_e027396ffffdHw4kR2mQz7LpXb"
SIBLING = "msg_1fd8c6901000Kw4kR2mQz7LpXb"
"""An id of the same millisecond and number as the first."""
FIRST, SECOND, THIRD = (f"msg_1fd8c690{number}000Isvh9E80uUjvg2" for number in (1, 2, 3))


def message(message_id: str, text: str, at: int, role: str = "user", **info: Any) -> dict[str, Any]:
    return {
        "info": {"id": message_id, "role": role, "time": {"created": CREATED + at}, **info},
        "parts": [{"id": f"prt_{text}", "messageID": message_id, "type": "text", "text": text}],
    }


def export(session: str, *messages: dict[str, Any], began: int = 0) -> bytes:
    """An export as OpenCode prints it: each of its messages names the session, unless the test says otherwise."""
    info = {"id": session, "title": "New", "version": "1.18.33", "time": {"created": CREATED + began}}
    placed = [each | {"info": {"sessionID": session} | each["info"]} for each in messages]
    return json.dumps({"info": info, "messages": placed}).encode()


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


@pytest.mark.parametrize("redacted", ["msg_1fd8c6901000REDACTEDREDACT", "msg_1fd8c6901000AAAAAAAAAAAAAA"])
def test_a_redacted_id_with_opencodes_digits_counts_in_its_own_session(redacted: str, tmp_path: Path) -> None:
    exports = [export(ANNA, message(redacted, "Anna asks", 1)), export(BERT, message(redacted, "Bert asks", 1))]
    assert all(len(read(data).diagnostics) == 1 for data in exports)
    assert histories(tmp_path, exports) == [["Anna asks"], ["Bert asks"]]


LATER = 100_000_000


@pytest.mark.parametrize(
    ("of_anna", "of_bert"),
    [
        pytest.param({"sessionID": None}, {"sessionID": None, "time": {"created": CREATED + LATER}}, id="one is late"),
        pytest.param({"sessionID": ANNA}, {"sessionID": ANNA}, id="both name one session"),
        pytest.param({}, {"time": {"created": CREATED + LATER}}, id="one has another time"),
    ],
)
def test_an_id_of_opencode_that_two_sessions_have_does_not_mix_them(
    of_anna: dict[str, Any], of_bert: dict[str, Any], tmp_path: Path
) -> None:
    """R-C13: in any order; only the message that says what OpenCode says of its own keeps the plain id."""
    exports = [
        export(ANNA, message(FIRST, "Anna says", 1, **of_anna)),
        export(BERT, message(FIRST, "Bert says", 1, **of_bert)),
    ]
    [note] = read(exports[1]).diagnostics
    assert (note.severity, note.json_path) == ("note", "$.messages[0].info.id")
    assert f"{BERT}:{FIRST}" in note.reason
    assert histories(tmp_path, exports) == [["Anna says"], ["Bert says"]]


@pytest.mark.parametrize("others", [[], ["long"], ["long", "alone"]])
def test_a_message_that_names_no_session_is_that_of_the_other_export(others: list[str], tmp_path: Path) -> None:
    """R-C1: it used to be there a second time, with its tokens, once another export named the session."""
    asked, heard = message(FIRST, "one", 1), message(SECOND, "two", 2, "assistant")
    nameless = [message(FIRST, "one", 1, sessionID=None), message(SECOND, "two", 2, "assistant", sessionID=None)]
    exports = {"long": export(ANNA, asked, heard), "alone": export(ANNA, asked)}
    assert not read(export(ANNA, *nameless)).diagnostics
    assert histories(tmp_path, [export(ANNA, *nameless), *(exports[name] for name in others)]) == [["one", "two"]]


def test_an_export_with_one_id_is_ordered_with_its_session(tmp_path: Path) -> None:
    """What the ids do not join comes twice, but in an order that does not depend on which file was read first."""
    said_twice = [message(FIRST, "one", 1), message(FIRST, "two", 1, "assistant")]
    real = [message(FIRST, "one", 1), message(SIBLING, "two", 1, "assistant")]
    assert histories(tmp_path, [export(ANNA, *said_twice), export(ANNA, *real)]) == [["one", "two", "two"]]


def test_an_export_without_its_beginning_numbers_no_turn(tmp_path: Path) -> None:
    said = [message(FIRST, "one", 1), message(SECOND, "two", 2, "assistant"), message(THIRD, "three", 3)]
    whole = [*said, message(THIRD.replace("903", "904"), "four", 4, "assistant")]
    exports = [export(ANNA, *whole), export(ANNA, *whole[2:]), export(ANNA, *whole[1:])]
    assert histories(tmp_path, exports) == [["one", "two", "three", "four"]]
    with open_store(tmp_path / "5.db") as store:
        places = [placed.membership for placed in store.messages(f"opencode:{ANNA}")]
        assert [(place.turn, place.step) for place in places] == [(1, None), (1, 1), (2, None), (2, 1)]
        assert store.session(f"opencode:{ANNA}").counts.turns == 2


@pytest.mark.parametrize("session", [ANNA, "session-1"])
def test_an_export_without_messages_can_be_restored(session: str, tmp_path: Path) -> None:
    """R-S24: nothing led from its session back to the file."""
    store, path = tmp_path / "turnlog.db", tmp_path / "empty.json"
    path.write_bytes(export(session))
    [name] = import_file(store, path).sessions
    with open_store(store) as opened:
        [file] = opened.restore(name, tmp_path / "restored")
    assert file.path.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("order", [("long", "tail"), ("tail", "long")])
def test_an_export_contained_in_another_is_restored_and_forgotten(order: tuple[str, str], tmp_path: Path) -> None:
    """R-S24: no row led from the session to it."""
    whole = [message(FIRST, "one", 1), message(SECOND, "two", 2, "assistant")]
    data = {"long": export(ANNA, *whole), "tail": export(ANNA, *whole[1:])}
    for name in order:
        (tmp_path / name).write_bytes(data[name])
        import_file(tmp_path / "turnlog.db", tmp_path / name)
    with open_store(tmp_path / "turnlog.db") as store:
        restored = store.restore(f"opencode:{ANNA}", tmp_path / "restored")
        assert sorted(file.path.read_bytes() for file in restored) == sorted(data.values())
        assert len(store.forget(f"opencode:{ANNA}").files) == 2
        assert store.sources() == []
    assert list((tmp_path / "imports").iterdir()) == []


def test_a_prompt_that_waited_and_a_copy_of_a_fork_keep_their_ids() -> None:
    """A client names a prompt before OpenCode takes it; a fork's copies have new ids and old times."""
    assert not read(export(ANNA, message(FIRST, "waited", 3_600_000))).diagnostics
    assert not read(export(ANNA, message(FIRST, "copied", -LATER * 9))).diagnostics


MADE_UP = [
    "ses_1",
    "ses_anonymous",
    "ses_000000000000",
    "ses_" + 26 * "a",
    "ses_abcdef123456AAAAAAAAAAAAAA",
    "ses_dfd1648610011Isvh9E80uUjvg",
    "session-1",
    "<session-id>",
    "REDACTED",
    "4f1c9f6e-8a7b-4c1d-9d6e-0a1b2c3d4e5f",
]


@pytest.mark.parametrize("session", MADE_UP)
@pytest.mark.parametrize("later", [0, LATER])
def test_a_foreign_session_id_does_not_join_opencode_sessions(session: str, later: int, tmp_path: Path) -> None:
    """R-C13: the second export used to replace the first."""
    exports = [
        export(session, message(FIRST, "Anna asks", 1), message(SECOND, "Anna hears", 2, "assistant")),
        export(session, message(FIRST, "Bert asks", 1), message(SECOND, "Bert hears", 2, "assistant"), began=later),
    ]
    assert all(read(data).diagnostics[0].json_path == "$.info.id" for data in exports)
    assert histories(tmp_path, exports) == [["Anna asks", "Anna hears"], ["Bert asks", "Bert hears"]]


@pytest.mark.parametrize("session", MADE_UP)
def test_a_later_export_of_a_session_with_a_made_up_id_is_the_same_session(session: str, tmp_path: Path) -> None:
    asked, heard = message(FIRST, "one", 1), message("msg_2", "two", 2, "assistant")
    exports = [export(session, asked), export(session, asked, heard), export(session, asked, heard)]
    assert histories(tmp_path, exports) == [["one", "two"]]


@pytest.mark.parametrize("session", [ANNA, "session-1", ""])
@pytest.mark.parametrize("order", [("id", "title", "version", "time"), ("title", "time", "version", "id")])
def test_an_export_is_known_by_what_it_contains(session: str, order: tuple[str, ...], tmp_path: Path) -> None:
    found = json.loads(export(session, message(FIRST, "one", 1)))
    (tmp_path / "export.json").write_text(json.dumps(found | {"info": {name: found["info"][name] for name in order}}))
    assert detect(tmp_path / "export.json").agent == "opencode"


def test_another_document_with_info_is_no_export(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps({"info": {"title": "x", "version": "1"}, "messages": {"a": 1}}))
    assert detect(tmp_path / "api.json").agent != "opencode"


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
