"""All exports of one history have no secret, in whichever field of the model it stands."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.exports import ExportFormat, export_session
from turnlog.exports.transcripts import write_transcripts
from turnlog.model import (
    Approval,
    CompactionEvent,
    ErrorEvent,
    FilePart,
    Message,
    MessageError,
    Origin,
    ReasoningPart,
    RecordEvent,
    RunMetadataEvent,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.codec import to_json
from turnlog.model.parts import Citation, ProviderData
from turnlog.store import open_store
from turnlog.store.sqlite.tables import TABLES, write_tables

# It has no types of its own.
pq: Any = import_module("pyarrow.parquet")

BODY = "A1b2C3d4E5f6" * 3
KEY = "Z9y8X7w6V5u4" * 3
PASSWORD = "hunter2horse"


def secret(place: str, body: str = BODY) -> str:
    """A name of a place with a token in it, as it may come from a program or a server."""
    return f"{place}_ghp_{body}"


def said(place: str) -> str:
    """A text with a token, and with a password that only another text names."""
    return f"{place} {secret('x')} and {PASSWORD}"


def facts(place: str) -> dict[str, Any]:
    return {"plain": {secret("name"): secret(place), "nested": [{"deep": said(place)}]}}


def provider(place: str) -> ProviderData:
    return ProviderData(name=secret("provider"), model=secret("m"), opaque={"signature": said(place)})


def call(id: str, name: str, results: tuple[ToolResult, ...] = (), **more: Any) -> ToolCallPart:
    return ToolCallPart(
        id=f"part-{id}",
        tool_call_id=id,
        tool_name=name,
        title=said("title"),
        input=to_json({secret("argument"): said("value")}),
        state=ToolState.OUTPUT_ERROR,
        approval=Approval(id=secret("approval"), source=secret("source"), reason=said("why"), metadata=facts("a")),
        metadata=facts("call"),
        started_at=at(2),
        results=results,
        **more,
    )


def result(id: str) -> ToolResult:
    return ToolResult(
        id=id,
        status="error",
        content=(TextPart(text=said("output")), FilePart(media_type=secret("text/x"), filename=secret("f"), data=b"x")),
        error_text=said("error"),
        completed_at=at(3),
        metadata=facts("result"),
    )


def write(home: Path) -> str:
    log = Log(home, secret("session"))
    log.session(
        project_path=f"/work/{secret('project')}",
        cwd=f"/work/{secret('cwd')}",
        git_branch=secret("branch"),
        git_commit=secret("commit"),
        agent_version=secret("1.0"),
        titles={"generated": said("A title")},
        metadata=facts("session"),
    )
    log.message(
        Message(
            id=secret("prompt"),
            role="user",
            origin=Origin.PROMPT,
            created_at=at(1),
            metadata=facts("prompt"),
            parts=(
                TextPart(text=said("asked"), metadata=facts("text"), provider=provider("text")),
                FilePart(media_type=secret("image/png"), filename=secret("picture"), url=f"https://x/{secret('u')}"),
                FilePart(media_type="text/plain", filename="a.txt", data=said("content").encode()),
            ),
        ),
        turn=1,
    )
    # Two names that differ in their secrets only stay two.
    calls = [(secret("call"), secret("tool")), (secret("call", KEY), secret("tool", KEY))]
    log.message(
        Message(
            id=secret("answer"),
            role="assistant",
            created_at=at(2),
            model=secret("model"),
            requested_model=secret("wanted"),
            response_id=secret("response"),
            request_id=secret("request"),
            stop_reason="error",
            raw_stop_reason=secret("stopped"),
            usage=Usage(input=10, output=5),
            error=MessageError(text=said("failed"), kind=secret("kind")),
            provider=provider("message"),
            metadata=facts("answer"),
            parts=(
                ReasoningPart(id=secret("thought"), text=said("thinks"), provider=provider("reasoning")),
                TextPart(
                    text=said("says"),
                    citations=(Citation(title=said("t"), url=f"https://x/{secret('c')}", cited_text=said("c")),),
                ),
                *(call(id, name) for id, name in calls),
                SourceUrlPart(source_id=secret("source"), url=f"https://x/{secret('s')}", title=said("s")),
                SourceDocumentPart(source_id="d", media_type=secret("m"), title=said("d"), filename=secret("d")),
            ),
        ),
        turn=1,
        step=1,
    )
    for id, _ in calls:
        log.result(id, result(f"{id}.r"))
    end = 1 << 30
    log.event(ErrorEvent(id=secret("e"), position=end, error_text=said("broke"), kind=secret("k"), metadata=facts("e")))
    log.event(RunMetadataEvent(id="r", position=end + 1, kind=secret("totals"), data=to_json(facts("run"))))
    log.event(RecordEvent(id="x", position=end + 2, kind=secret("record"), data=to_json(facts("record"))))
    log.event(CompactionEvent(id="c", position=end + 3, trigger=secret("t"), metadata=facts("compaction")))
    log.message(
        Message(
            id="named",
            role="user",
            origin=Origin.PROMPT,
            created_at=at(5),
            parts=(TextPart(text=f"DB_PASS={PASSWORD}"),),
        ),
        turn=2,
    )
    log.message(
        Message(id="last", role="assistant", created_at=at(6), model="large", parts=(TextPart(text="good bye"),)),
        turn=2,
        step=1,
    )
    return log.session_id


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    home = tmp_path_factory.mktemp("redacted") / "plain"
    home.mkdir()
    session_id = write(home)
    read_home(home.parent / "turnlog.db", home)
    return home.parent / "turnlog.db", session_id


def leaks(text: str) -> list[str]:
    """What is around a secret that stayed."""
    return [text[max(0, at - 60) : at + 20] for word in (BODY, KEY, PASSWORD) for at in _places(text, word)]


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


@pytest.mark.parametrize("format", ExportFormat)
@pytest.mark.parametrize("time", ["first", "again"])
def test_no_export_has_a_secret(history: tuple[Path, str], format: ExportFormat, time: str) -> None:
    """Also when where the secrets are is kept already."""
    path, session_id = history
    with open_store(path) as store:
        kept = export_session(store, session_id, format, model="large").data.decode()
        made = export_session(store, session_id, format, model="large", redact=True)
    assert leaks(kept), "the format has nothing to hide"
    assert leaks(made.data.decode()) == []
    assert leaks(str([made.losses, made.repairs, made.masked])) == []
    assert leaks(str({name: bytes(data) for name, data in made.files.items()})) == []


def test_no_table_has_a_secret_and_calls_join_their_results(history: tuple[Path, str], tmp_path: Path) -> None:
    write_tables(history[0], tmp_path / "masked", redact=True)
    rows = {name: pq.read_table(tmp_path / "masked" / f"{name}.parquet").to_pylist() for name in TABLES}
    assert {name: leaks(str(found)) for name, found in rows.items() if leaks(str(found))} == {}
    calls = [row["tool_call_id"] for row in rows["tool_calls"]]
    assert len(set(calls)) == 2
    assert sorted(row["tool_call_id"] for row in rows["results"]) == sorted(calls)
    assert {row["message_id"] for row in rows["tool_calls"]} <= {row["message_id"] for row in rows["messages"]}
    assert {row["session_id"] for row in rows["messages"]} == {row["session_id"] for row in rows["sessions"]}
    assert len({row["tool_name"] for row in rows["tool_calls"]}) == 2


def test_no_transcript_has_a_secret(history: tuple[Path, str], tmp_path: Path) -> None:
    path, session_id = history
    with open_store(path) as store:
        write_transcripts(store, tmp_path / "made", [session_id], redact=True)
    assert leaks(str(pq.read_table(tmp_path / "made" / "transcripts.parquet").to_pylist())) == []


def test_a_masked_history_still_pairs_calls_with_their_results(history: tuple[Path, str]) -> None:
    path, session_id = history
    with open_store(path) as store:
        made = msgspec.json.decode(export_session(store, session_id, "json", redact=True).data)
    messages = {each["message"]["id"]: each["message"] for each in made["events"] if each["type"] == "message"}
    calls = [part for message in messages.values() for part in message.get("parts", ()) if part["type"] == "tool-call"]
    results = [each for each in made["events"] if each["type"] == "tool-result"]
    assert len({part["tool_call_id"] for part in calls}) == 2
    assert {each["tool_call_id"] for each in results} == {part["tool_call_id"] for part in calls}
    for each in made["events"]:
        if each["type"] == "message":
            assert each["membership"]["message_id"] == each["message"]["id"]
