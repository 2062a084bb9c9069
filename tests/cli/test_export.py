"""`turnlog export`: every format, with and without secrets, and what is reported beside it."""

import json
import os
import stat
from errno import ENOSPC
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.cli_runner import Command
from support.places import OTHER_KINDS, Kind
from support.plain_agent import Log
from support.plain_history import SESSION, SUBAGENT, prompt
from support.plain_store import at, read_home
from support.secret_examples import EXAMPLES
from turnlog import paths
from turnlog.agents.changes import Link
from turnlog.cassette.player import play
from turnlog.cassette.tape import AskedText, load_cassette, requests_of
from turnlog.cli.formatting import size
from turnlog.exports import ExportFormat
from turnlog.exports.formats import FORMATS
from turnlog.history import decode_lines
from turnlog.model import FilePart, Message, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.codec import encode, to_json

SECRET = EXAMPLES["github-token"].secret
PASSWORD = "hunter2horse"
LEAKY = "plain:99bb0000-1111-4111-8111-000000000003"


def export(run: Command, *arguments: str, session: str = SESSION) -> str:
    result = run("export", session, *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def leaky(logs: Path) -> str:
    """A session with a secret in a prompt, an input, a large output, a file and a title."""
    log = Log(logs, LEAKY.partition(":")[2])
    log.session(titles={"generated": f"About {SECRET}"})
    log.message(prompt("x1", f"use {SECRET}", 0), turn=1)
    log.spill("y1.txt", f"all of it, and {SECRET}".encode())
    large = TextPart(text=("filler " * 20_000) + SECRET)
    file = FilePart(media_type="text/plain", filename=f"{SECRET}.txt", data=SECRET.encode())
    call = ToolCallPart(
        tool_call_id="y1",
        tool_name="Bash",
        input=to_json({"command": f"curl {SECRET}"}),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(ToolResult(id="y1.0", content=(large, file), spilled_to="y1.txt"),),
    )
    log.message(Message(id="x2", role="assistant", created_at=at(1), model="large", parts=(call,)), turn=1, step=1)
    read_home(paths.database_path(), logs)
    return LEAKY


def test_the_help_names_the_formats_that_there_are(run: Command) -> None:
    assert list(FORMATS) == list(ExportFormat)
    assert "|".join(FORMATS) in "".join(run("export", "--help").stdout.split())


@pytest.mark.usefixtures("store")
def test_json_is_the_whole_history(run: Command) -> None:
    document = json.loads(export(run, "--as", "json"))
    shown = json.loads(run("show", SESSION, "--json").stdout)
    assert document == shown
    lines = decode_lines(export(run, "--as", "jsonl").encode())
    assert not lines.bad_lines
    assert [json.loads(encode(event)) for event in lines.events] == shown["events"]


@pytest.mark.usefixtures("store")
def test_html_has_its_subagents(run: Command) -> None:
    made = export(run, "--as", "html")
    for expected in ("Repair the webshop", "all\ngreen", "no such file: missing.py", "Nothing there."):
        assert expected in made
    assert 'data-session="plain:3f2a91c0-1111-4111-8111-000000000001.scout"' in made


@pytest.mark.usefixtures("store")
def test_markdown_has_every_output(run: Command) -> None:
    made = export(run, "--as", "markdown")
    for expected in (
        "# Repair the webshop",
        "## Turn 1",
        "all\ngreen",
        "no such file: missing.py",
        "(rewound)",
        "pytest -q",
    ):
        assert expected in made
    assert "\x1b" not in made


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("anthropic", "messages"),
        ("openai-chat", "messages"),
        ("openrouter", "messages"),
        ("responses", "input"),
        ("gemini", "contents"),
    ],
)
def test_requests_and_what_they_cost(run: Command, name: str, field: str) -> None:
    result = run("export", SESSION, "--as", name, "--model", "other-model")
    body: Any = json.loads(result.stdout)
    assert "webshop" in json.dumps(body[field])
    assert "repaired: left-out:" in result.stderr


@pytest.mark.usefixtures("store")
def test_strict_fails_where_something_is_lost(run: Command) -> None:
    assert "lost: reasoning" in run("export", SESSION, "--as", "anthropic", "--model", "other").stderr
    strict = run("export", SESSION, "--as", "anthropic", "--model", "other", "--strict")
    assert strict.exit_code == 1
    assert strict.stdout == ""
    assert "reasoning" in strict.stderr


@pytest.mark.usefixtures("store")
def test_ui_messages_and_a_file(run: Command, tmp_path: Path) -> None:
    messages = json.loads(export(run, "--as", "uimessages"))
    assert [message["role"] for message in messages][:2] == ["user", "assistant"]
    assert export(run, "--as", "uimessages", "-o", str(tmp_path / "out.json")) == ""
    assert json.loads((tmp_path / "out.json").read_text()) == messages


@pytest.mark.usefixtures("store")
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    output = tmp_path / "out" / "session.md"
    output.parent.mkdir()
    output.write_text("the one of yesterday")
    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "fsync", fail)
        result = run("export", SESSION, "--as", "json", "-o", str(output))
    assert (result.exit_code, result.stderr) == (1, f"turnlog: {output}: No space left on device\n")
    assert output.read_text() == "the one of yesterday"
    assert list(output.parent.iterdir()) == [output]


@pytest.mark.usefixtures("store")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(("kind", "reason"), OTHER_KINDS.items())
def test_what_is_no_file_is_not_written_to(run: Command, tmp_path: Path, kind: Kind, reason: str) -> None:
    """C8: nor waited for."""
    output = tmp_path / "out" / "there"
    output.parent.mkdir()
    with kind(output):
        result = run("export", SESSION, "--as", "json", "-o", str(output))
        assert (result.exit_code, result.stderr) == (1, f"turnlog: {output}: this is {reason}, not a file\n")
        assert list(output.parent.iterdir()) == [output]
        assert not (tmp_path / "outside").exists()


@pytest.mark.usefixtures("store")
def test_only_the_user_can_read_what_is_exported(run: Command, tmp_path: Path) -> None:
    """C8: as the store that it comes from, also where others could read what was there."""
    output = tmp_path / "out.json"
    for _ in range(2):
        assert run("export", SESSION, "--as", "json", "-o", str(output)).exit_code == 0
        assert stat.S_IMODE(output.stat().st_mode) == 0o600
        output.chmod(0o644)


def test_outputs_in_files_of_their_own_are_there_too(run: Command, leaky: str) -> None:
    whole = f"all of it, and {SECRET}"
    assert whole in export(run, "--as", "markdown", session=leaky)
    assert json.loads(export(run, "--as", "json", session=leaky))["outputs"] == {"y1.txt": whole}
    assert "lost: output: the whole of y1.txt" in run("export", leaky, "--as", "jsonl").stderr


@pytest.mark.parametrize("name", [str(name) for name in FORMATS if name is not ExportFormat.OTEL])
def test_redacted_exports_hold_no_secret(run: Command, leaky: str, name: str) -> None:
    assert SECRET in export(run, "--as", name, session=leaky)
    result = run("export", leaky, "--as", name, "--redact")
    assert result.exit_code == 0
    assert SECRET not in result.stdout + result.stderr
    assert "[REDACTED:github-token]" in result.stdout
    assert "masked: github-token at " in result.stderr
    if name not in ("markdown", "html", "jsonl"):
        json.loads(result.stdout)


@pytest.mark.parametrize("name", [str(name) for name in FORMATS])
def test_a_password_that_a_name_shows_is_masked_where_it_is_alone(run: Command, logs: Path, name: str) -> None:
    """In the title, a prompt before, an input, and a large output, though only a subagent's output names it."""
    log = Log(logs, "env")
    log.session(titles={"generated": f"About {PASSWORD}"})
    log.message(prompt("e1", f"why is {PASSWORD} refused?", 0), turn=1)
    log.spill("e1.txt", f"all of it, and {PASSWORD}".encode())
    call = ToolCallPart(
        tool_call_id="e1",
        tool_name="Bash",
        input=to_json({"command": f"login {PASSWORD}"}),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(ToolResult(id="e1.0", content=(TextPart(text=f"no, {PASSWORD}"),), spilled_to="e1.txt"),),
    )
    log.message(Message(id="e2", role="assistant", created_at=at(1), model="large", parts=(call,)), turn=1, step=1)
    log.link(
        Link(kind="subagent", parent_session_id="plain:env", child_session_id="plain:env-below", tool_call_id="e1")
    )
    below = Log(logs, "env-below")
    below.session(titles={"generated": f"Read {PASSWORD}"})
    below.message(prompt("f1", f"DB_PASS={PASSWORD}", 2), turn=1)
    read_home(paths.database_path(), logs)
    options = ["--content"] if name == "otel" else ["--redact"]
    made = run("export", "plain:env", "--as", name, *options)
    assert made.exit_code == 0, made.stderr
    assert PASSWORD not in made.stdout + made.stderr
    assert "[REDACTED:password]" in made.stdout
    assert name == "otel" or PASSWORD in run("export", "plain:env", "--as", name).stdout


@pytest.mark.usefixtures("store")
def test_a_cassette_plays_the_session_and_its_subagents(run: Command, tmp_path: Path) -> None:
    """R-S42."""
    path = tmp_path / "x.json"
    result = run("export", SESSION, "--as", "cassette", "-o", str(path))
    assert "lost: rewound: message" in result.stderr
    cassette = load_cassette(path)
    assert [track.session for track in cassette.tracks] == [SESSION, SUBAGENT]
    (first, _) = next(iter(requests_of(cassette.tracks[0])))
    with play(path) as player:
        prompts = [{"role": "user", "content": entry.text} for entry in first if isinstance(entry, AskedText)]
        request = Request(f"{player.url}/v1/messages", json.dumps({"messages": prompts}).encode())
        with urlopen(request, timeout=10) as answer:
            assert json.load(answer)["role"] == "assistant"


@pytest.mark.usefixtures("store")
def test_a_written_file_is_named_and_its_redaction_reported(run: Command, tmp_path: Path) -> None:
    output = tmp_path / "session.md"
    result = run("export", SESSION, "--as", "markdown", "--redact", "-o", str(output))
    assert f"Wrote {output} (" in result.stderr
    assert ("No secrets were found." in result.stderr) is ("masked: " not in result.stderr)


@pytest.mark.usefixtures("store")
def test_images_of_a_trajectory_are_files_beside_it(run: Command, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    assert run("export", SESSION, "--as", "atif", "-o", str(output)).exit_code == 0
    steps: list[Any] = json.loads(output.read_text())["steps"]
    (shown,) = [part for step in steps if isinstance(step["message"], list) for part in step["message"]]
    image = tmp_path / str(shown["source"]["path"])
    assert image.read_bytes() == b"\x89PNG...."
    assert stat.S_IMODE(image.stat().st_mode) == 0o600
    assert "lost: media: 1 files, which only --output writes" in run("export", SESSION, "--as", "atif").stderr


def test_a_trace_has_what_was_said_only_if_requested_and_then_no_secret(run: Command, leaky: str) -> None:
    made = run("export", leaky, "--as", "otel")
    assert "curl" not in made.stdout
    assert SECRET not in made.stdout
    assert "lost: content:" in made.stderr
    whole = run("export", leaky, "--as", "otel", "--content").stdout
    assert "curl" in whole
    assert "[REDACTED:github-token]" in whole
    assert SECRET not in whole
    assert run("export", leaky, "--as", "json", "--content").exit_code == 2


@pytest.mark.usefixtures("store")
def test_a_trace_is_binary_in_a_file_for_it(run: Command, tmp_path: Path) -> None:
    output = tmp_path / "x.pb"
    made = run("export", SESSION, "--as", "otel", "-o", str(output))
    assert made.exit_code == 0
    assert f"Wrote {output} ({size(output.stat().st_size)})." in made.stderr
    request = ExportTraceServiceRequest.FromString(output.read_bytes())
    assert [each.scope_spans[0].scope.name for each in request.resource_spans] == ["turnlog", "turnlog"]


@pytest.mark.parametrize("name", ["parquet", "scout"])
@pytest.mark.usefixtures("store")
def test_formats_of_many_sessions_take_no_session(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    short = SESSION.partition(":")[2][:6]
    result = run("export", "--as", name, short)
    assert result.exit_code == 2
    assert f"{short} is a session" in result.stderr
    assert not (tmp_path / short).exists()
    assert run("export", "--as", name, f"./{short}/").exit_code == 0
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for unnamed in ((), ("",)):
        assert f"Name the folder: turnlog export --as {name} DIR." in run("export", "--as", name, *unnamed).stderr
    assert not list(Path().iterdir())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("mine")
    assert "notes: is a file: name a folder for the tables" in run("export", "--as", name, "notes").stderr


def test_a_format_that_is_none_names_the_one_that_may_be_meant(run: Command) -> None:
    result = run("export", SESSION, "--as", "markdwon")
    assert (result.exit_code, "Did you mean 'markdown'?" in result.stderr) == (2, True)
    assert "Did you mean" not in run("export", SESSION, "--as", "qqqq").stderr


@pytest.mark.usefixtures("store")
def test_a_model_is_only_for_a_request(run: Command) -> None:
    result = run("export", SESSION, "--as", "markdown", "--model", "gpt")
    assert (result.exit_code, "--model is for requests: anthropic, " in result.stderr) == (2, True)
