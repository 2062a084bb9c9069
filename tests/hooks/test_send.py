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

from support.places import OTHER_KINDS, Kind
from turnlog.errors import NotFoundError
from turnlog.hooks import send
from turnlog.hooks.server_socket import ServerSocket, connect

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
def listening(folder: Path, answer: bytes | None) -> Generator[list[bytes]]:
    """A server that takes one request and answers so; None: it never does."""
    received: list[bytes] = []
    own = ServerSocket(folder)
    with own.listener as server:
        server.listen()
        own.announce()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                data = b""
                while not data.endswith(b"}"):
                    data += connection.recv(65536)
                received.append(data)
                if answer is None:
                    time.sleep(1)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield received
        thread.join(5)
        own.withdraw()


TAKEN = b"HTTP/1.1 202 Accepted\r\n\r\n"


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


@pytest.mark.parametrize("folder", ["data", "d" * 60 + "/" + "e" * 60], ids=["short", "longer than an address may be"])
def test_a_server_that_takes_the_event_is_all_it_needs(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    with listening(place, TAKEN) as received:
        run(place)
    head, _, body = received[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/hooks/claude-code?at=")
    assert b"\r\nHost: localhost\r\n" in head
    assert b"authorization" not in head.lower()
    assert body == EVENT
    assert spooled(place) == []
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "answer", [None, b"HTTP/1.1 401 Unauthorized\r\n\r\n", b"HTTP/1.1 500 x\r\n\r\n", b"", b"SSH-2.0\n"]
)
def test_what_no_server_takes_is_spooled(answer: bytes | None, tmp_path: Path) -> None:
    with listening(tmp_path, answer):
        assert run(tmp_path) < 2
    assert len(spooled(tmp_path)) == 1


def test_a_file_in_the_place_of_the_socket_is_no_server(tmp_path: Path) -> None:
    (tmp_path / send.SOCKET).write_bytes(b"")
    run(tmp_path)
    assert len(spooled(tmp_path)) == 1


def test_who_listens_on_a_port_that_a_server_has_left_learns_nothing(tmp_path: Path) -> None:
    """No file leads there: neither one that a killed server of an older version left, nor the socket of a dead one."""
    server = ServerSocket(tmp_path)
    server.listener.listen()
    server.announce()
    server.listener.close()  # as when it is killed: the name stays
    with socket.create_server(("127.0.0.1", 0)) as thief:
        thief.setblocking(False)
        port = thief.getsockname()[1]
        (tmp_path / "server").write_text(f"127.0.0.1\n{port}\n{os.getpid()}\ns3cret\n")
        run(tmp_path)
        with pytest.raises(BlockingIOError):
            thief.accept()
    assert len(spooled(tmp_path)) == 1


def test_the_socket_of_another_user_learns_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that others may write to, one of them could be faster than the server."""
    status = os.lstat

    def owned_by_another(path: str) -> os.stat_result:
        found = status(path)
        return os.stat_result([*found[:4], 4242, *found[5:]])

    with listening(tmp_path, TAKEN) as received:
        monkeypatch.setattr(os, "lstat", owned_by_another)
        assert not send.post(str(tmp_path), "claude-code", 1.0, EVENT)
        assert received == []
        monkeypatch.undo()
        assert send.post(str(tmp_path), "claude-code", 1.0, EVENT)


def test_a_platform_without_unix_sockets_spools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("_socket.AF_UNIX")
    assert not send.post(str(tmp_path), "claude-code", 1.0, EVENT)


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


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_spool_that_is_no_file_keeps_nobody(tmp_path: Path, kind: Kind) -> None:
    """C8: a pipe that nobody reads would keep the agent waiting, and a link lead elsewhere."""
    spool = tmp_path / "data" / "hooks" / "claude-code" / "s1.jsonl"
    spool.parent.mkdir(parents=True)
    with kind(spool):
        assert run(tmp_path / "data") < 5
    assert not (spool.parent.parent / "outside").exists()


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
    with listening(tmp_path, TAKEN) as received:
        done = subprocess.run([sys.executable, "-I", "-S", "-c", program], input=EVENT, capture_output=True, check=True)
    assert len(received) == 1
    heavy = {"turnlog", "asyncio", "collections", "enum", "http", "json", "pathlib", "re", "signal", "socket", "typing"}
    assert not heavy & set(done.stdout.decode().split())


def test_the_socket_is_for_the_user_alone_and_goes_with_its_server(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    server = ServerSocket(folder)
    with server.listener:
        server.announce()
        path = folder / send.SOCKET
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (stat.S_ISSOCK(path.stat().st_mode), stat.S_IMODE(path.stat().st_mode)) == (True, 0o600)
        server.withdraw()
    assert list(folder.iterdir()) == []


def test_a_server_that_was_started_later_is_the_one_that_is_found(tmp_path: Path) -> None:
    first, second = ServerSocket(tmp_path), ServerSocket(tmp_path / "x")
    with first.listener, second.listener:
        first.announce()
        second.announce()
        (tmp_path / "x" / send.SOCKET).replace(tmp_path / send.SOCKET)
        first.withdraw()
        assert (tmp_path / send.SOCKET).is_socket()


def test_where_none_listens_a_command_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="turnlog serve"):
        connect(tmp_path)
