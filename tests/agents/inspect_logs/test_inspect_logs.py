"""Logs of evaluations become sessions as inspect_ai itself reads them; what is damaged is named, and the rest kept."""

from __future__ import annotations

import base64
import json
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard

import turnlog
from support.cli_runner import call as command
from support.provider_messages import PNG
from turnlog.agents import agent
from turnlog.agents.base import RowAgent, Source
from turnlog.agents.changes import Changes
from turnlog.agents.inspect_logs.log_files import read_log, read_sample
from turnlog.errors import SourceError
from turnlog.model import (
    ErrorEvent,
    FilePart,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    UnknownPart,
    Usage,
)
from turnlog.model.codec import encode
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.session_state import session_state

DATA = Path(__file__).parents[2] / "data/inspect_logs"
JUDGED: list[dict[str, Any]] = json.loads((DATA / "judged.json").read_text())
TOUR = DATA / "0.3.285/tour/tides.json"
PIECES = DATA / "0.3.285/pieces/tides.eval"
FAILED = DATA / "0.3.285/failed/broken.eval"
SAMPLE = Path(turnlog.__file__).parent / "sample/inspect-ai/lighthouse/tides.eval"


def imported(path: Path, store: Path, exit_code: int = 0) -> dict[str, Any]:
    result = command("import", str(path), "--store", str(store), "--json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.output)


def conversation(store: Store, session_id: str) -> list[Message]:
    return [stored.message for stored in store.messages(session_id)]


def text_of(parts: Any) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def log(*samples: Any, **more: Any) -> bytes:
    """A log as JSON, as Inspect begins one."""
    evaluation = {"eval_id": "run", "task": "tides", "packages": {"inspect_ai": "0.3.285"}}
    return json.dumps({"version": 2, "status": "success", "eval": evaluation, "samples": samples, **more}).encode()


def sample(*messages: Any, name: str = "one", **more: Any) -> dict[str, Any]:
    return {"id": name, "epoch": 1, "input": "in", "target": "out", "messages": list(messages), **more}


def read(folder: Path, *messages: Any, **more: Any) -> Changes:
    """What the reader makes of a sample."""
    path = folder / "log.json"
    path.write_bytes(log(sample(*messages, **more)))
    found = agent("inspect-ai")
    assert isinstance(found, RowAgent)
    [source] = [each for each in found.find_sources(folder) if each.session_id is not None]
    return found.fold(source).feed(b"".join(found.read_rows(source, ()).lines), 0)


def only(changes: Changes) -> Message:
    [change] = changes.messages
    return change.message


# -- what Inspect itself reads


@pytest.mark.parametrize(
    ("path", "judged"), list(zip((TOUR, PIECES, FAILED, SAMPLE), (JUDGED[0], *JUDGED), strict=True))
)
def test_a_log_says_what_its_own_program_reads_in_it(path: Path, judged: dict[str, Any], tmp_path: Path) -> None:
    session_id = f"inspect-ai:{judged['eval_id']}.{judged['id']}_epoch_{judged['epoch']}"
    assert imported(path, tmp_path / "s.db")["sessions"] == [session_id]
    with open_store(tmp_path / "s.db") as store:
        session = store.session(session_id)
        messages = conversation(store, session_id)
        events = store.events(session_id)
    results = {result.id: result for message in messages for part in message.parts if isinstance(part, ToolCallPart)
               for result in part.results}  # fmt: skip
    said = iter(messages)
    for number, wanted in enumerate(judged["messages"]):
        if wanted["role"] == "tool":
            result = results[f"{session.external_id}.{number}"]
            assert (text_of(result.content), result.error_text) == (wanted["text"], wanted["error"])
            continue
        message = next(said)
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        assert (message.role, text_of(message.parts)) == (wanted["role"], wanted["text"])
        assert [part.text for part in message.parts if isinstance(part, ReasoningPart)] == wanted["reasoning"]
        assert [[each.tool_call_id, each.tool_name, json.loads(encode(each.input))] for each in calls] == wanted[
            "calls"
        ]
        images = [part.data for part in message.parts if isinstance(part, FilePart)]
        assert images == [base64.b64decode(each.partition(",")[2]) for each in wanted["images"]]
    assert next(said, None) is None
    assert [event.error_text for event in events if isinstance(event, ErrorEvent)] == [
        each for each in (judged["error"],) if each
    ]
    usage = session.usage.usage
    for total in judged["usage"].values():
        assert usage.input == total["input_tokens"]
        assert usage.cache_read == total["input_tokens_cache_read"]
        assert (usage.output or 0) + (usage.reasoning or 0) == total["output_tokens"]
        assert usage.reasoning == total["reasoning_tokens"]


def test_a_sample_that_failed_has_ended(tmp_path: Path) -> None:
    [session_id] = imported(FAILED, tmp_path / "s.db")["sessions"]
    with open_store(tmp_path / "s.db") as store:
        (facts,) = store.turn_facts([session_id]).values()
    assert session_state(facts, None, datetime.now(UTC)).state == "done"


@pytest.mark.parametrize("log_file", [SAMPLE, PIECES])
def test_a_restored_sample_is_a_log_that_brings_the_same_session(log_file: Path, tmp_path: Path) -> None:
    [session_id] = imported(log_file, tmp_path / "s.db")["sessions"]
    restored = command("restore", session_id, "--to", str(tmp_path / "back"), "--store", str(tmp_path / "s.db"))
    assert restored.exit_code == 0, restored.output
    [path] = (tmp_path / "back").rglob("*.json")
    assert imported(path, tmp_path / "again.db")["sessions"] == [session_id]
    with open_store(tmp_path / "s.db") as one, open_store(tmp_path / "again.db") as other:
        assert conversation(one, session_id) == conversation(other, session_id)


# -- what messages become


def test_contents_keep_their_kind(tmp_path: Path) -> None:
    image = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    contents = [
        {"type": "text", "text": "see attachment://0123456789abcdef0123456789abcdef"},
        {"type": "reasoning", "reasoning": "c2VjcmV0", "redacted": True, "summary": "a short one"},
        {"type": "image", "image": "attachment://fedcba9876543210fedcba9876543210"},
        {"type": "image", "image": "https://127.0.0.1/pier.png"},
        {"type": "audio", "audio": "data:audio/mpeg;base64,!", "format": "mp3"},
        {"type": "document", "document": "notes.pdf", "filename": "notes.pdf", "mime_type": "application/pdf"},
        {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "search", "arguments": "{}", "result": ""},
    ]
    attachments = {"0123456789abcdef0123456789abcdef": "the pier", "fedcba9876543210fedcba9876543210": image}
    parts = only(read(tmp_path, {"role": "assistant", "content": contents}, attachments=attachments)).parts
    text, thought, picture, linked, sound, document, used = parts
    assert isinstance(text, TextPart)
    assert text.text == "see the pier"
    assert isinstance(thought, ReasoningPart)
    assert (thought.text, thought.redacted) == ("a short one", True)
    files = [each for each in (picture, linked, sound, document) if isinstance(each, FilePart)]
    assert [(each.media_type, each.data, each.url) for each in files] == [
        ("image/png", PNG, None),
        ("image/*", None, "https://127.0.0.1/pier.png"),
        ("audio/mpeg", None, "data:audio/mpeg;base64,!"),
        ("application/pdf", None, "notes.pdf"),
    ]
    assert isinstance(used, UnknownPart)
    assert used.kind == "tool_use"


def test_only_what_the_data_or_an_operator_said_is_a_prompt(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "one", "source": "input"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "please go on"},
        {"role": "user", "content": "stop there", "source": "operator"},
    ]
    found = [change.message.origin for change in read(tmp_path, *said).messages]
    assert found == [Origin.PROMPT, None, Origin.HARNESS, Origin.PROMPT]


@pytest.mark.parametrize(("kind", "status"), [("timeout", "error"), ("approval", "denied"), ("cancelled", "aborted")])
def test_a_failed_call_says_how(kind: str, status: str, tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "function": "bash", "arguments": {}}],
    }
    answer = {"role": "tool", "content": "", "tool_call_id": "c", "error": {"type": kind, "message": "no"}}
    [part] = only(read(tmp_path, asked, answer)).parts
    assert isinstance(part, ToolCallPart)
    assert [(result.status, result.error_text) for result in part.results] == [(status, "no")]


def test_every_call_of_a_model_is_counted_once(tmp_path: Path) -> None:
    def event(name: str | None, used: dict[str, int], **more: Any) -> dict[str, Any]:
        choice = {"message": {"role": "assistant", "content": "", "id": name}, "stop_reason": "stop"}
        return {"event": "model", "model": "m", "output": {"model": "m", "choices": [choice], "usage": used}, **more}

    beside = {"input_tokens": 10, "output_tokens": 4, "total_tokens": 17, "reasoning_tokens": 3}
    inside = {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14, "reasoning_tokens": 3}
    events = [
        event("a", beside),
        event("b", inside),
        event("c", inside, cache="read"),
        event("grader", {"input_tokens": 100, "output_tokens": 1, "total_tokens": 101}),
    ]
    answers = [{"role": "assistant", "content": name, "id": name} for name in "abc"]
    changes = read(tmp_path, *answers, events=events)
    assert [change.message.usage for change in changes.messages] == [
        Usage(input=10, output=4, reasoning=3),
        Usage(input=10, output=1, reasoning=3),
        None,
    ]
    [session] = changes.sessions.values()
    [total] = session.totals.values()
    assert (total.usage.input, total.usage.output, total.calls) == (100, 1, 1)


# -- damage


def test_what_is_no_message_is_named_by_its_place(tmp_path: Path) -> None:
    changes = read(
        tmp_path, {"role": "user", "content": "hi"}, 7, {"role": "tool", "content": "x", "tool_call_id": "q"}
    )
    assert [each.json_path for each in changes.diagnostics] == ["$.messages[1]", "$.messages[2].tool_call_id"]
    assert [text_of(change.message.parts) for change in changes.messages] == ["hi", "x"]


def test_an_attachment_may_be_named_often_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.agents.inspect_logs.contents._LARGEST", 10)
    said = {"role": "user", "content": f"attachment://{'a' * 32} " * 3}
    changes = read(tmp_path, said, attachments={"a" * 32: "waves"})
    assert text_of(only(changes).parts).split() == ["waves", "waves", f"attachment://{'a' * 32}"]
    assert [each.json_path for each in changes.diagnostics] == ["$.attachments"]


def test_samples_with_the_same_id_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(log(*[sample({"role": "user", "content": text}) for text in ("hi", "ho")]))
    found = imported(path, tmp_path / "s.db")
    assert found["sessions"] == ["inspect-ai:run.one_epoch_1", "inspect-ai:run.one_epoch_1~2"]
    with open_store(tmp_path / "s.db") as store:
        texts = [text_of(message.parts) for each in found["sessions"] for message in conversation(store, each)]
    assert texts == ["hi", "ho"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_files_with_the_same_name_one_is_read_and_the_import_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", log().replace(b', "samples": []', b""))
        for text in ("hi", "ho"):
            archive.writestr("samples/one_epoch_1.json", json.dumps(sample({"role": "user", "content": text})))
    found = imported(path, tmp_path / "s.db", exit_code=6)
    assert [each["reason"] for each in found["problems"]] == [
        "files with the name of another one, which is read instead: 1"
    ]


def test_of_a_log_that_was_cut_off_the_whole_samples_are_read(tmp_path: Path) -> None:
    said = {"role": "user", "content": "hi"}
    whole = log(sample(said), sample(said, name="two"))
    path = tmp_path / "log.json"
    path.write_bytes(whole[: whole.rindex(b'"messages"')])
    found = imported(path, tmp_path / "s.db", exit_code=6)
    assert found["sessions"] == ["inspect-ai:run.one_epoch_1"]
    assert [each["path"] for each in found["problems"]] == [str(path)]


def test_of_a_zip_with_a_damaged_sample_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    said = {"role": "user", "content": "wave " * 50}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", log().replace(b', "samples": []', b""))
        for name in ("one", "two"):
            archive.writestr(f"samples/{name}_epoch_1.json", json.dumps(sample(said, name=name)))
        archive.writestr("samples/large_epoch_1/messages/0.json", "[]")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"wave wave", b"wove wave", 1))
    found = imported(path, tmp_path / "s.db", exit_code=6)
    assert found["sessions"] == ["inspect-ai:run.two_epoch_1"]
    reasons = {each["path"].removeprefix(str(path)): each["reason"] for each in found["problems"]}
    assert "CRC" in reasons["#one_epoch_1"]
    assert reasons[""] == "large_epoch_1 is without its sample.json"


def read_pieces(folder: Path, **changed: Any) -> Changes:
    """What the reader makes of a sample in pieces, of which some are as a test wants them; None: not there."""
    said = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two attachment://1", "id": "a"}]
    more = [{"role": "user", "content": "three"}, {"role": "assistant", "content": "four attachment://0"}]
    used = {"usage": {"input_tokens": 7, "output_tokens": 3}, "choices": [{"message": {"id": "a"}}]}
    files: dict[str, Any] = {
        "sample": {"id": "one", "epoch": 1, "input": "in", "message_refs": [[0, 2], [2, 4]]},
        "messages/0": said,
        "messages/2": more,
        "events/0": [{"event": "model", "model": "m", "output": used}],
        "attachments/0": ["waves"],
        "attachments/1": ["wind"],
        **changed,
    }
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", log().replace(b', "samples": []', b""))
        for name, piece in files.items():
            if piece is not None:
                text = piece if isinstance(piece, str) else json.dumps(piece)
                archive.writestr(f"samples/one_epoch_1/{name}.json", text)
    found = agent("inspect-ai")
    assert isinstance(found, RowAgent)
    [source] = [each for each in found.find_sources(folder) if each.session_id is not None]
    return found.fold(source).feed(b"".join(found.read_rows(source, ()).lines), 0)


def test_pieces_are_put_together(tmp_path: Path) -> None:
    changes = read_pieces(tmp_path)
    assert not changes.diagnostics
    messages = [change.message for change in changes.messages]
    assert [text_of(message.parts) for message in messages] == ["one", "two wind", "three", "four waves"]
    assert messages[1].usage == Usage(input=7, output=3)


ALL = ["one", "two wind", "three", "four waves"]


@pytest.mark.parametrize(
    ("changed", "kept", "reason"),
    [
        ({"messages/2": "[{"}, ALL[:2], "messages/2.json: no list of JSON"),
        ({"messages/2": None}, ALL[:2], "$.message_refs[1]: 2 messages are missing"),
        ({"messages/0": None}, ALL[2:], "messages/2.json: the list has 0 items before it"),
        ({"events/0": "{}"}, ALL, "events/0.json: no list of JSON"),
        (
            {"attachments/1": None},
            [ALL[0], "two attachment://" + "1".zfill(32), *ALL[2:]],
            "attachments that are missing, or too large together: " + "1".zfill(32),
        ),
        ({"messages/4": "[" * 100_000}, ALL, "messages/4.json: no list of JSON"),
        ({"messages/900000000000": [{"role": "user"}]}, ALL, "000.json: the list has 4 items before it"),
        ({"metadata": "[]"}, ALL, "metadata.json: no object of JSON"),
        (
            {"sample": {"id": "one", "epoch": 1, "message_refs": [[0, 4], [4, 9 << 60], ["0", 1], [-9, 1]]}},
            ALL,
            "$.message_refs[2]: no pair of numbers",
        ),
    ],
)
def test_of_a_sample_with_a_damaged_piece_the_others_are_read(
    changed: dict[str, Any], kept: list[str], reason: str, tmp_path: Path
) -> None:
    changes = read_pieces(tmp_path, **changed)
    assert [text_of(change.message.parts) for change in changes.messages] == kept
    assert any(reason in each.reason for each in changes.diagnostics), changes.diagnostics


def test_a_number_that_is_none_keeps_the_piece(tmp_path: Path) -> None:
    odd = '[{"event": "score", "score": NaN}, {"event": "score", "score": 1' + "0" * 400 + "}]"
    assert not read_pieces(tmp_path, **{"events/1": odd}).diagnostics


def test_a_message_may_be_named_often_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.agents.inspect_logs.pieces._SPARE", 0)
    changes = read_pieces(tmp_path, sample={"id": "one", "epoch": 1, "message_refs": [[0, 4]] * 9})
    assert [text_of(change.message.parts) for change in changes.messages] == ALL * 4
    assert [each.reason for each in changes.diagnostics] == ["$.message_refs[4]: the same messages more than 4 times"]


def test_a_file_that_unpacks_to_more_than_its_zip_says_takes_no_memory(tmp_path: Path) -> None:
    """A few bytes of zstd may stand for gigabytes."""
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", log().replace(b', "samples": []', b""))
        archive.writestr("samples/one_epoch_1.json", zstandard.ZstdCompressor().compress(bytes(64 << 20)))
    data = bytearray(path.read_bytes())
    # Python 3.11 writes no zip of zstd: its number takes the place of the one for stored files.
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.rindex(mark) + place
        data[at : at + 2] = (93).to_bytes(2, "little")
    path.write_bytes(data)
    found = read_log(path)
    assert found is not None
    tracemalloc.start()
    with pytest.raises(SourceError, match="checksum"):
        read_sample(path, found, found.samples[0])
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_a_sample_with_a_false_large_size_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.agents.zip_members.ALWAYS", 1 << 20)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", log().replace(b', "samples": []', b""))
        archive.writestr("samples/one_epoch_1.json", bytes(8 << 20))
    found = read_log(path)
    assert found is not None
    with pytest.raises(SourceError, match=r"one_epoch_1.json is not unpacked: 0.0 MB that claim to be 8 MB"):
        read_sample(path, found, found.samples[0])


@pytest.mark.parametrize("keep", [40, 3000])
def test_a_zip_that_was_cut_off_is_refused_with_a_reason(keep: int, tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(SAMPLE.read_bytes()[:keep])
    result = command("import", str(path), "--store", str(tmp_path / "s.db"))
    assert result.exit_code == 1
    assert "no whole zip" in result.output
    # In a folder it does not keep the others from being read.
    (tmp_path / "other.json").write_bytes(TOUR.read_bytes())
    found = imported(tmp_path, tmp_path / "s.db", exit_code=6)
    assert [each["path"] for each in found["problems"]] == [str(path)]
    assert len(found["sessions"]) == 1


def test_a_source_of_another_shape_is_no_session(tmp_path: Path) -> None:
    found = agent("inspect-ai")
    changes = found.fold(Source(agent="inspect-ai", path="x#y", root="/")).feed(b'{"table":"sample","row":{}}\n', 0)
    assert changes.counts.unreadable == 1
    assert not changes.messages
