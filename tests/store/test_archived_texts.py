"""What only a provider can read is in the archive, and a body names its place: nobody who reads it sees that."""

from __future__ import annotations

import base64
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.plain_agent import Line, Log, PlainAgent, session_id
from support.plain_store import read_home
from support.store_dump import check_integrity, open_read_only
from turnlog.agents.base import SourceKind
from turnlog.errors import StoreError
from turnlog.model import Fate, Message, MessageEvent, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.base import ProviderData
from turnlog.model.codec import encode, to_json
from turnlog.store import external_content, open_store
from turnlog.store.base import Store
from turnlog.store.connection import connect
from turnlog.store.external_content import SHORTEST, Feed, WholeBodies, leave_out
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync import log_file
from turnlog.sync.rebuild import rebuild

SHORT = "c2hvcnQ="


def proof_of(seed: int, size: int = 600) -> str:
    """Base64 that does not compress, as providers write it."""
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def thought(message_id: str, *proofs: str, **opaque: Any) -> Message:
    """A message with a thought for each proof, and an answer."""
    parts = [
        ReasoningPart(
            id=f"{message_id}.{number}",
            text="",
            provider=ProviderData(name="p", opaque={"signature": proof, "id": SHORT, **opaque}),
        )
        for number, proof in enumerate(proofs)
    ]
    new_text = TextPart(id=f"{message_id}.{len(proofs)}", text=f"said in {message_id}")
    return Message(id=message_id, role="assistant", model="large", parts=(*parts, new_text))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


def messages_of(store: Store, name: str) -> list[Message]:
    return [placed.message for placed in store.messages(session_id(name))]


def check_whole(path: Path, name: str, *messages: Message) -> None:
    """Every reader of the store gets the messages as they were, and the store is sound."""
    with open_store(path) as store:
        assert messages_of(store, name) == list(messages)
        assert [placed.message for placed in store.messages(session_id(name), resolve_blobs=False)] == list(messages)
        history = store.history(session_id(name), resolve_blobs=False)
        assert [event.message for event in history if isinstance(event, MessageEvent)] == list(messages)
        for resolve in (True, False):
            bodies = store.bodies(session_id(name), 0, 1 << 40, fates=[Fate.ACTIVE], resolve_blobs=resolve)
            assert bodies == {message.id: encode(message) for message in messages}
        for message in messages:
            assert store.message(message.id) == message
    with closing(open_read_only(path)) as connection:
        check_integrity(connection)


def stored(path: Path) -> list[bytes]:
    """Bodies as they are stored."""
    with closing(open_read_only(path)) as connection:
        read = external_content.BodyReader(connection)
        columns = external_content.BODY_COLUMNS
        return [read(*row) for row in connection.execute(f"SELECT {columns} FROM messages m ORDER BY key")]


def uses(path: Path) -> int:
    with closing(open_read_only(path)) as connection:
        return connection.execute("SELECT count(*) FROM archived_texts").fetchone()[0]


def test_a_long_text_of_a_provider_is_stored_once_and_read_whole(home: Path, path: Path) -> None:
    """R-K6: a signature is kept, whether or not there is a text to it."""
    message = thought("m", proof_of(1), proof_of(2), details=[{"data": proof_of(3)}])
    Log(home, "one").message(message)
    read_home(path, home)
    (body,) = stored(path)
    assert b'"signature":{"$archived":[' in body
    assert SHORT.encode() in body
    assert not any(proof_of(seed).encode() in body for seed in (1, 2, 3))
    assert uses(path) == 1
    check_whole(path, "one", message)


def test_a_window_names_the_place(home: Path, path: Path) -> None:
    """What is there is JSON that the raw record answers."""
    Log(home, "one").message(thought("m", proof_of(1)))
    read_home(path, home)
    with open_store(path) as store:
        item = msgspec.json.decode(store.window(session_id("one")).to_json())["items"][0]
        (raw,) = store.records("m")
    source, generation, offset, length = item["parts"][0]["provider"]["opaque"]["signature"]["$archived"]
    assert (source, generation, raw.data[offset : offset + length].decode()) == (1, 0, proof_of(1))


@pytest.mark.parametrize(
    "text",
    [
        proof_of(1)[: SHORTEST - 1],
        "words of a thought " * 40,
        '","id":{"' * 40,
        "\u00e9" * 400,
    ],
)
def test_what_is_short_or_could_be_taken_for_json_stays_where_it_is(text: str, home: Path, path: Path) -> None:
    message = thought("m", text)
    Log(home, "one").message(message)
    read_home(path, home)
    assert uses(path) == 0
    check_whole(path, "one", message)


def test_a_text_that_the_log_writes_otherwise_stays_where_it_is(home: Path, path: Path) -> None:
    message = thought("m", "abc/" * 100)
    line = msgspec.json.encode(Line(message=msgspec.Raw(encode(message)))).replace(b"abc/", rb"abc\/")
    Log(home, "one").line(line)
    read_home(path, home)
    assert uses(path) == 0
    check_whole(path, "one", message)


def test_texts_that_begin_alike_are_distinguished(home: Path, path: Path) -> None:
    begin = proof_of(1)[:400]
    message = thought("m", begin + proof_of(2), begin + proof_of(3), begin + proof_of(2), begin)
    Log(home, "one").message(message)
    read_home(path, home)
    assert stored(path)[0].count(b"$archived") == 4
    check_whole(path, "one", message)


def test_a_text_that_is_a_key_too_is_left_out_where_it_is_a_value(home: Path, path: Path) -> None:
    message = thought("m", proof_of(1), **{proof_of(1): proof_of(1)})
    Log(home, "one").message(message)
    read_home(path, home)
    assert stored(path)[0].count(proof_of(1).encode()) == 1
    check_whole(path, "one", message)


NATURAL = st.recursive(
    st.sampled_from([b'{"$archived":[1,0,5,300]}', b'{ "$archived":[1,0,5,300]}', b'{"$archived":[1]}', b'"x"']),
    lambda inner: st.lists(inner, max_size=3).map(lambda found: b"[" + b",".join(found) + b"]"),
)


@given(NATURAL)
def test_what_a_log_says_in_the_same_words_is_no_place(json: bytes) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        body = b'{"input":' + json + b"}"
        kept = leave_out(body, {})
        assert msgspec.json.decode(kept) == msgspec.json.decode(body)
        assert WholeBodies(connection).whole(kept) == body


def test_a_call_with_such_an_input_is_read_as_it_was(home: Path, path: Path) -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="t", input=to_json({"x": {"$archived": [1, 0, 5, 300]}}))
    message = thought("m", proof_of(1))
    message = msgspec.structs.replace(message, parts=(*message.parts, call))
    Log(home, "one").message(message)
    read_home(path, home)
    check_whole(path, "one", message)


@pytest.mark.parametrize("chunk", [700, 4 << 20])
def test_a_message_that_goes_on_in_the_same_pass_is_whole(
    chunk: int, home: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read a moment ago is in the archive already, and what is read again stays where it was."""
    monkeypatch.setattr(log_file, "CHUNK_SIZE", chunk)
    log = Log(home, "one")
    call = ToolCallPart(id="m.9", tool_call_id="c", tool_name="t")
    first = thought("m", proof_of(1))
    log.message(first)
    log.message(Message(id="other", role="user", parts=(TextPart(text="x"),)))
    log.message(msgspec.structs.replace(first, parts=(call,)))
    log.message(thought("m", proof_of(1), proof_of(2)))
    log.result("c", ToolResult(id="r", content=(TextPart(text="done"),)), message_id="m")
    read_home(path, home)
    with open_store(path) as store:
        parts = store.message("m").parts
    proofs = [part.provider.opaque["signature"] for part in parts if part.type == "reasoning" and part.provider]
    assert proofs == [proof_of(1), proof_of(2)]
    assert [found.id for part in parts if isinstance(part, ToolCallPart) for found in part.results] == ["r"]
    assert not any(proof_of(seed).encode() in body for body in stored(path) for seed in (1, 2))
    with closing(open_read_only(path)) as connection:
        check_integrity(connection)


def test_the_same_again_changes_nothing(home: Path, path: Path) -> None:
    log = Log(home, "one")
    log.message(thought("m", proof_of(1)))
    read_home(path, home)
    before = stored(path)
    log.message(thought("m", proof_of(1)))
    read_home(path, home)
    assert stored(path) == before
    with closing(open_read_only(path)) as connection:
        assert connection.execute("SELECT revision FROM messages").fetchone() == (1,)


def test_a_log_that_is_written_anew_keeps_what_it_once_said(home: Path, path: Path) -> None:
    gone, stays = thought("gone", proof_of(1)), thought("stays", proof_of(2))
    log = Log(home, "one")
    log.message(gone)
    log.message(stays)
    read_home(path, home)
    log.path.unlink()
    log = Log(home, "one")
    log.message(stays)
    read_home(path, home)
    assert uses(path) == 2
    with open_store(path) as store:
        assert [store.message("gone"), store.message("stays")] == [gone, stays]


def test_a_store_of_an_older_version_is_read_as_it_is(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It repeats the texts; what comes then does not."""
    log = Log(home, "one")
    old, new = thought("old", proof_of(1)), thought("new", proof_of(2))
    log.message(old)
    with monkeypatch.context() as patch:
        patch.setattr(external_content, "SHORTEST", 1 << 40)
        read_home(path, home)
    log.message(new)
    read_home(path, home)
    assert [proof.encode() in body for body, proof in zip(stored(path), map(proof_of, (1, 2)), strict=True)] == [
        True,
        False,
    ]
    check_whole(path, "one", old, new)


def test_forgetting_a_session_keeps_messages_shared_with_another(home: Path, path: Path) -> None:
    """R-S29: their texts lie in its log alone; of the rest of it no byte is left."""
    shared, own = thought("shared", proof_of(1)), thought("own", proof_of(2))
    log = Log(home, "one")
    log.message(shared)
    log.message(own)
    read_home(path, home)
    Log(home, "two").message(shared, copied=True)
    read_home(path, home)
    assert uses(path) == 2
    forget_for_good(path, session_id("one"))
    assert uses(path) == 0
    check_whole(path, "two", shared)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"said in own" not in b"".join(stored(path))
    assert proof_of(2)[:40].encode() not in path.read_bytes()
    rebuild(path, agents=[PlainAgent()])
    check_whole(path, "two", shared)


def test_a_copy_that_a_body_does_not_need_may_go(home: Path, path: Path) -> None:
    shared = thought("shared", proof_of(1))
    Log(home, "one").message(shared)
    read_home(path, home)
    Log(home, "two").message(shared, copied=True)
    read_home(path, home)
    before = stored(path)
    forget_for_good(path, session_id("two"))
    assert stored(path) == before
    check_whole(path, "one", shared)


def test_a_rebuilt_store_leaves_them_out_again(home: Path, path: Path) -> None:
    message = thought("m", proof_of(1))
    Log(home, "one").message(message)
    read_home(path, home)
    before = stored(path)
    (home / "one.jsonl").unlink()
    rebuild(path, agents=[PlainAgent()])
    assert stored(path) == before
    check_whole(path, "one", message)


def test_a_place_that_is_not_there_is_damage(home: Path, path: Path) -> None:
    Log(home, "one").message(thought("m", proof_of(1)))
    read_home(path, home)
    with closing(connect(path, checked=False)) as connection:
        connection.execute("DELETE FROM archive")
    with open_store(path) as store, pytest.raises(StoreError, match="damaged"):
        store.message("m")


def test_only_what_its_own_records_say_is_looked_for() -> None:
    message, data = thought("m", proof_of(1)), b"0123456789" + proof_of(1).encode()
    feed = Feed(7, 0, 100, data)
    assert feed.places(message, [(100, 10, None), (100, 0, "r")]) == {}
    assert feed.places(message, [(50, 900, None)]) == {}
    places = feed.places(message, [(110, len(proof_of(1)), None)])
    assert places == {proof_of(1).encode(): b'{"$archived":[7,0,110,%d]}' % len(proof_of(1))}


@pytest.mark.parametrize("kind", [SourceKind.STREAM, SourceKind.HOOKS, SourceKind.SIDECAR])
def test_what_is_no_log_is_stored_whole(kind: SourceKind, home: Path, path: Path) -> None:
    class Other(PlainAgent):
        def discover(self, roots: Any = None) -> Any:
            for source in super().discover(roots):
                yield msgspec.structs.replace(source, kind=kind)

    Log(home, "one").message(thought("m", proof_of(1)))
    read_home(path, home, Other())
    assert uses(path) == 0
    assert proof_of(1).encode() in stored(path)[0]
