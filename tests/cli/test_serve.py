import http.client
import json
import os
import signal
import stat
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Command, command
from turnlog import paths, server
from turnlog.hooks import send
from turnlog.hooks.server_socket import ServerSocket

TOKEN = "token-of-a-test-2026"


@pytest.fixture(autouse=True)
def _patient_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook soon gives up, as its agent waits for it; here other tests keep the server from answering."""
    monkeypatch.setattr(send, "SECONDS_FOR_SERVER", 20.0)


@contextmanager
def process(*arguments: str) -> Generator[str]:
    """The link that `turnlog serve` prints, which runs meanwhile."""
    started = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    assert started.stdout is not None
    try:
        link = started.stdout.readline().removeprefix("turnlog is at ").strip()
        assert link.startswith("http://127.0.0.1:")
        yield link
    finally:
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=20)


def redeem(link: str) -> http.client.HTTPResponse:
    """What the server answers a browser that has opened a link."""
    page, _, code = link.partition("#code=")
    body = json.dumps({"code": code}).encode()
    return urllib.request.urlopen(urllib.request.Request(f"{page}api/sign-in", body), timeout=10)


def test_the_page_and_the_api_answer_until_the_process_is_stopped(store: Path) -> None:
    with process("serve", "--no-browser", "--no-sync", "--port", "0") as link:
        assert ask(link, store.parent)["store"]["path"] == str(store)


def ask(link: str, folder: Path) -> Any:
    """The status of the server that a link leads to, requested by a program that may read the token in this folder."""
    page, _, code = link.partition("#code=")
    assert len(code) == 22
    token = (folder / "access_token").read_text().strip()
    request = urllib.request.Request(f"{page}api/status", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `turnlog serve` passes on to the server, which does not start."""
    found: dict[str, Any] = {}

    def serve(store_path: Path, **settings: Any) -> None:
        found.update(settings, store_path=store_path)
        settings["announce"]("http://127.0.0.1:1/#code=c")

    monkeypatch.setattr(server, "serve", serve, raising=False)
    return found


def test_what_was_requested_is_passed_on(run: Command, tmp_path: Path, passed_on: dict[str, Any]) -> None:
    store = tmp_path / "other.db"
    result = run("serve", "--port", "9000", "--no-sync", "--no-browser", "--store", str(store))
    assert result.stdout == "turnlog is at http://127.0.0.1:1/#code=c\n"
    expected = {"host": "127.0.0.1", "port": 9000, "token": None, "use_token": True, "sync": False}
    assert {name: passed_on[name] for name in expected} == expected
    assert (passed_on["open_browser"], passed_on["store_path"], passed_on["folder"]) == (False, store, tmp_path)


@pytest.mark.usefixtures("sample")
def test_a_token_on_the_command_line_is_one_that_others_can_read(run: Command, passed_on: dict[str, Any]) -> None:
    result = run("serve", "--token", TOKEN)
    assert "other users of this machine can read --token" in result.stderr
    assert passed_on["token"] == TOKEN


def test_a_token_that_can_be_guessed_is_refused(
    run: Command, tmp_path: Path, passed_on: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("fifteen-letters\n")
    file.chmod(0o600)
    results = [run("serve", "--token", "t"), run("serve", "--token-file", str(file))]
    monkeypatch.setenv("TURNLOG_TOKEN", "t")
    for result in [*results, run("serve")]:
        assert (result.exit_code, passed_on) == (1, {})
        assert "shorter than 16 characters" in result.stderr
        assert "secrets.token_urlsafe()" in result.stderr


@pytest.mark.usefixtures("sample")
def test_a_token_comes_from_a_file_or_the_environment_without_a_word(
    run: Command, tmp_path: Path, passed_on: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOG_TOKEN", f" {TOKEN}-environment\n")
    assert "--token" not in run("serve").stderr
    assert passed_on["token"] == f"{TOKEN}-environment"
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}-file\n")
    file.chmod(0o600)
    run("serve", "--token-file", str(file))
    assert passed_on["token"] == f"{TOKEN}-file"
    run("serve", "--no-token")
    assert (passed_on["token"], passed_on["use_token"]) == (None, False)


def test_a_token_that_others_can_read_is_refused(run: Command, tmp_path: Path, passed_on: dict[str, Any]) -> None:
    file = tmp_path / "token"
    file.write_text("known\n")
    file.chmod(0o644)
    result = run("serve", "--token-file", str(file))
    assert (result.exit_code, "other users can read" in result.stderr, passed_on) == (1, True, {})
    assert run("serve", "--token-file", str(tmp_path / "none")).exit_code == 1


@pytest.mark.parametrize("more", [("--no-token", "--token", "t"), ("--token", "")])
def test_options_that_contradict_each_other_are_wrong_use(run: Command, more: tuple[str, ...]) -> None:
    assert run("serve", *more).exit_code == 2


def test_the_running_server_makes_another_link(store: Path, run: Command) -> None:
    with process("serve", "--no-browser", "--no-sync", "--port", "0") as first:
        result = run("open", "--print")
        assert (result.exit_code, result.stderr) == (0, "")
        link = result.stdout.strip()
        assert link.partition("#")[0] == first.partition("#")[0]
        assert link != first
        assert redeem(link).status == redeem(first).status == 200
    after = run("open", "--print")
    assert (after.exit_code, "turnlog serve" in after.stderr) == (3, True)


def test_what_the_server_cannot_be_asked_is_reported(store: Path, run: Command) -> None:
    own = ServerSocket(store.parent)
    with own.listener as listener:
        listener.listen()
        own.announce()

        def refuse() -> None:
            for answer in (
                b"",
                b"HTTP/1.1 503 x\r\nContent-Length: 28\r\n\r\n" + b'{"error":{"message":"busy"}} ',
                b"SSH\n",
            ):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        results = [run("open", "--print") for _ in range(3)]
        thread.join(5)
        own.withdraw()
    assert [result.exit_code for result in results] == [1, 1, 1]
    assert "does not answer" in results[0].stderr
    assert "busy" in results[1].stderr


def test_a_port_that_cannot_be_is_wrong_use(run: Command) -> None:
    assert run("serve", "--port", "70000").exit_code == 2


@contextmanager
def served() -> Generator[dict[str, Any]]:
    """The status of `turnlog serve` once it has read everything; it runs meanwhile."""
    with process("serve", "--no-browser", "--port", "0") as link:
        deadline = time.monotonic() + 60
        while not (status := ask(link, paths.data_dir()))["sync"]["passes"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield status


def test_a_sample_is_shown_until_there_are_logs(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served() as status:
        assert status["sample"]
        assert status["store"]["sessions"] >= 3
        assert status["store"]["path"] == str(paths.sample_path())
    assert not paths.database_path().exists()
    assert "this is the sample" in capfd.readouterr().err
    project = home / ".claude/projects/-work"
    project.mkdir(parents=True)
    (project / "bbbbbbbb-0000-4000-8000-000000000001.jsonl").write_text("{}\n")
    with served() as status:
        assert not status["sample"]
        assert status["store"]["path"] == str(paths.database_path())
    assert "this is the sample" not in capfd.readouterr().err


@pytest.mark.usefixtures("sample")
def test_hooks_and_links_find_the_server_of_the_sample(home: Path, run: Command) -> None:
    """What an agent does meanwhile is none of the sample: it waits for the user's own store."""
    event = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "Hello", "cwd": "/work"}
    with process("serve", "--no-browser", "--port", "0") as link:
        assert stat.S_IMODE(paths.data_dir().stat().st_mode) == 0o700
        assert run("open", "--print").stdout.startswith(link.partition("#")[0])
        assert ask(link, paths.data_dir())["sample"]
        assert send.post(str(paths.data_dir()), "claude-code", 1.7e12, json.dumps(event).encode())
    assert [path.name for path in paths.data_dir().glob("hooks/*/*")] == ["s1.jsonl"]
    assert list(paths.sample_path().parent.glob("hooks")) == []
    run("sync")
    assert "claude-code:s1" in run("sessions").stdout


def test_a_store_that_was_requested_is_opened_empty_as_it_is(
    run: Command, tmp_path: Path, passed_on: dict[str, Any]
) -> None:
    run("serve", "--store", str(tmp_path / "other.db"))
    assert (passed_on["store_path"], passed_on.get("sample"), passed_on["sync"]) == (tmp_path / "other.db", None, True)


def _log_a_prompt(home: Path) -> None:
    log = home / ".claude" / "projects" / "-work" / "00000000-0000-4000-8000-000000000001.jsonl"
    log.parent.mkdir(parents=True)
    record = {"type": "user", "sessionId": log.stem, "uuid": log.stem, "message": {"role": "user", "content": "hi"}}
    log.write_text(json.dumps(record) + "\n")


def _send_a_prompt(home: Path) -> None:
    event = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "Hello", "cwd": "/work"}
    assert send.post(str(paths.data_dir()), "claude-code", 1.7e12, json.dumps(event).encode())


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("begin", [_log_a_prompt, _send_a_prompt], ids=["log", "hook"])
def test_the_sample_is_replaced_by_the_first_session_without_a_restart(
    begin: Callable[[Path], None], home: Path
) -> None:
    """R-C18: also where a hook is the only one to report it, before the agent writes its log."""
    with process("serve", "--no-browser", "--port", "0") as link:
        folder = paths.data_dir()
        assert ask(link, folder)["sample"] is True
        begin(home)
        deadline = time.monotonic() + 30
        status: dict[str, Any] = {}
        while time.monotonic() < deadline and not (status and status["store"]["sessions"]):
            # Between the two servers nobody listens.
            with suppress(OSError):
                status = {} if (found := ask(link, folder))["sample"] else found
            time.sleep(0.1)
        assert status["store"]["path"] == str(paths.database_path())
        assert status["store"]["sessions"] == 1
