"""The command that agents start: quick, silent, and gone, whatever it meets."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turnlog.hooks import send
from turnlog.hooks.server_file import announced

EVENT = b'{"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "caf\xc3\xa9"}'


def run(folder: Path, payload: bytes = EVENT, *, agent: str = "claude-code") -> float:
    """Start the command as an agent does; it must be silent and content. The seconds that it took."""
    started = time.monotonic()
    command = [sys.executable, "-I", "-S", send.__file__, agent, str(folder)]
    done = subprocess.run(command, input=payload, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return time.monotonic() - started


def spooled(folder: Path, agent: str = "claude-code") -> list[bytes]:
    return [line for path in sorted((folder / "hooks" / agent).glob("*")) for line in path.read_bytes().splitlines()]


@contextmanager
def listener(answer: bytes | None) -> Generator[tuple[int, list[bytes]]]:
    """A server that takes one request and answers so; None: it never does."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                data = b""
                while not data.endswith(b"}"):
                    data += connection.recv(65536)
                heard.append(data)
                if answer is None:
                    time.sleep(1)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard
        thread.join(5)


def test_without_a_server_the_event_waits_in_its_sessions_spool(tmp_path: Path) -> None:
    before = time.time() * 1000
    run(tmp_path)
    run(tmp_path, agent="codex")
    (line,) = spooled(tmp_path)
    assert json.loads(line)["event"] == json.loads(EVENT)
    assert before <= json.loads(line)["at"] <= time.time() * 1000
    (path,) = (tmp_path / "hooks" / "claude-code").glob("*")
    assert (path.name, stat.S_IMODE(path.stat().st_mode)) == ("s1.jsonl", 0o600)
    assert len(spooled(tmp_path, "codex")) == 1


def test_a_server_that_takes_the_event_is_all_it_needs(tmp_path: Path) -> None:
    with listener(b"HTTP/1.1 202 Accepted\r\n\r\n") as (port, heard), announced(tmp_path, "127.0.0.1", port, "s3cret"):
        run(tmp_path)
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/hooks/claude-code?at=")
    assert f"\r\nHost: 127.0.0.1:{port}\r\n".encode() in head
    assert b"\r\nAuthorization: Bearer s3cret" in head
    assert body == EVENT
    assert spooled(tmp_path) == []


@pytest.mark.parametrize(
    "answer", [None, b"HTTP/1.1 401 Unauthorized\r\n\r\n", b"HTTP/1.1 500 x\r\n\r\n", b"", b"SSH-2.0\n"]
)
def test_what_no_server_takes_is_spooled(answer: bytes | None, tmp_path: Path) -> None:
    with listener(answer) as (port, _), announced(tmp_path, "127.0.0.1", port, None):
        assert run(tmp_path) < 2
    assert len(spooled(tmp_path)) == 1


@pytest.mark.parametrize(
    "place", [b"", b"one line", b"127.0.0.1\n80\n\n\n", b"127.0.0.1\nx\n1\n\n", b"\xff\n1\n1\n1\n"]
)
def test_a_file_that_names_no_server_is_none(place: bytes, tmp_path: Path) -> None:
    (tmp_path / send.SERVER).write_bytes(place)
    run(tmp_path)
    assert len(spooled(tmp_path)) == 1


def test_a_server_that_died_is_none(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for pid in (os.getpid(), ended.pid):
        (tmp_path / send.SERVER).write_text(f"127.0.0.1\n{port}\n{pid}\n\n")
        run(tmp_path)
    assert len(spooled(tmp_path)) == 2


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no json",
        b"[]",
        b'{"session_id": ""}',
        b'{"session_id": "../up"}',
        b'{"session_id": "a/b"}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_event_is_dropped_without_a_word(payload: bytes, tmp_path: Path) -> None:
    run(tmp_path, payload)
    assert not (tmp_path / "hooks").exists()


def test_an_event_of_several_lines_is_one_line_in_the_spool(tmp_path: Path) -> None:
    run(tmp_path, json.dumps(json.loads(EVENT), indent=2).replace("\n", "\r\n").encode())
    (line,) = spooled(tmp_path)
    assert json.loads(line)["event"] == json.loads(EVENT)


def test_a_folder_that_cannot_be_written_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "hooks").write_text("a file is in the way")
    run(tmp_path)
    run(tmp_path, agent="nobody")


def test_an_agent_that_never_ends_its_input_is_not_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", send.__file__, "claude-code", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as waiting:
        assert waiting.wait(send.SECONDS_FOR_INPUT + 10) == 0
        assert waiting.stdin is not None
        waiting.stdin.close()


def test_events_side_by_side_are_whole_lines(tmp_path: Path) -> None:
    payload = json.dumps({"session_id": "s1", "tool_response": "x" * 200_000}).encode()
    threads = [threading.Thread(target=send.spool, args=(str(tmp_path), "codex", 1.0, payload)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [json.loads(line)["at"] for line in spooled(tmp_path, "codex")] == [1.0] * 8


def test_it_imports_nothing_of_ours_and_little_else(tmp_path: Path) -> None:
    """What starts in milliseconds must not grow heavy by accident."""
    program = (
        "import sys, os\n"
        "os._exit = lambda code: None\n"
        f"sys.argv = [{send.__file__!r}, 'claude', {str(tmp_path)!r}]\n"
        f"exec(compile(open({send.__file__!r}).read(), 'send.py', 'exec'), {{'__name__': '__main__'}})\n"
        "print(*sorted(sys.modules))\n"
    )
    with listener(b"HTTP/1.1 202 Accepted\r\n\r\n") as (port, heard), announced(tmp_path, "127.0.0.1", port, None):
        done = subprocess.run([sys.executable, "-I", "-S", "-c", program], input=EVENT, capture_output=True, check=True)
    assert len(heard) == 1
    heavy = {"turnlog", "asyncio", "collections", "enum", "http", "json", "pathlib", "re", "signal", "socket", "typing"}
    assert not heavy & set(done.stdout.decode().split())


def test_the_file_of_a_server_is_for_the_user_alone_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with announced(folder, "0.0.0.0", 4711, "s3cret"):
        path = folder / send.SERVER
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text() == f"127.0.0.1\n4711\n{os.getpid()}\ns3cret\n"
    assert list(folder.iterdir()) == []


def test_a_server_runs_also_where_it_cannot_be_announced(tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_bytes(b"")
    with announced(no_folder, "127.0.0.1", 1, None):
        assert no_folder.read_bytes() == b""


def test_a_server_that_was_started_later_stays_announced(tmp_path: Path) -> None:
    with announced(tmp_path, "127.0.0.1", 1, None):
        later = "127.0.0.1\n2\n1\n\n"
        (tmp_path / send.SERVER).write_text(later)
    assert (tmp_path / send.SERVER).read_text() == later
