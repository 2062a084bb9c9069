"""Nothing leaves the machine, and nothing but the store is written: Python itself reports every attempt."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from turnlog import paths
from turnlog.server.sample import LOGS

SESSION = "11111111-1111-4111-8111-111111111111"

WATCH = '''
"""Writes down what the interpreter is about to do (PEP 578): in every process, since all of them import this."""
import json, os, sys

_notes = os.open(os.environ["WATCH_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod", "os.truncate", "os.utime", "os.link",
          "os.symlink", "shutil.rmtree", "sqlite3.connect"}
_NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"}

def _watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)) and (arguments[2] or 0) & _WRITING:
        note = "write", os.fsdecode(arguments[0])
    elif event in _PATHS and not isinstance(arguments[0], int):  # what is open has been noted
        note = "write", os.fsdecode(arguments[0])
    elif event in _NETWORK:
        note = event, repr(arguments[1] if event == "socket.bind" else arguments)
    else:
        return
    os.write(_notes, json.dumps(note).encode() + b"\\n")

sys.addaudithook(_watch)
'''


@pytest.fixture
def notes(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where every process that is started from now on writes what it does; logs lie in the home."""
    shutil.copytree(LOGS / "claude-code", home / ".claude")
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch/sitecustomize.py").write_text(WATCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "watch"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("WATCH_NOTES", str(tmp_path / "notes"))
    return tmp_path / "notes"


def noted(notes: Path) -> list[tuple[str, str]]:
    return [tuple(json.loads(line)) for line in notes.read_text().splitlines()]


def written(notes: Path, *allowed: Path) -> set[str]:
    """What was written outside these folders."""
    found = {path.removeprefix("file://").partition("?")[0] for kind, path in noted(notes) if kind == "write"}
    return {path for path in found if not is_device(Path(path)) and not is_below(Path(path), allowed)}


def is_device(path: Path) -> bool:
    # Temporary files may be in memory, which is below the devices.
    return path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")


def is_below(path: Path, folders: tuple[Path, ...]) -> bool:
    # Making a folder makes those above it.
    return any(path.is_relative_to(folder) or folder.is_relative_to(path) for folder in folders)


def fingerprints(folder: Path) -> dict[Path, tuple[int, int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.stat().st_mode, path.read_bytes()) for path in files}


def turnlog(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "turnlog", *arguments], check=True, capture_output=True)


def test_commands_write_only_the_store_and_reach_nobody(home: Path, notes: Path, tmp_path: Path) -> None:
    before = fingerprints(home)
    for command in (["sync"], ["sessions"], ["search", "file"], ["usage"], ["show", SESSION], ["doctor"], ["agents"]):
        turnlog(*command)
    turnlog("rebuild")
    turnlog("restore", SESSION, "--to", str(tmp_path / "restored"))
    turnlog("forget", SESSION, "--yes")
    assert written(notes, paths.data_dir(), tmp_path / "restored") == set()
    assert {kind for kind, _ in noted(notes)} == {"write"}
    assert {path: facts for path, facts in fingerprints(home).items() if path in before} == before


def test_the_server_writes_only_the_store_and_is_reached_only_from_here(home: Path, notes: Path) -> None:
    before = fingerprints(home)
    process = subprocess.Popen(
        [sys.executable, "-m", "turnlog", "serve", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        link = process.stdout.readline().removeprefix("turnlog is at ").strip()
        address, token = link.partition("#")[0], (paths.data_dir() / "access_token").read_text().strip()
        wait_for_a_pass(address, token)
        for path in ("", "api/sessions", f"api/sessions/claude-code:{SESSION}/window", "api/search?q=file"):
            assert get(address + path, token)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert written(notes, paths.data_dir()) == set()
    reached = [(kind, what) for kind, what in noted(notes) if kind != "write"]
    assert {kind for kind, _ in reached} <= {"socket.bind", "socket.getaddrinfo"}
    own_socket = str(paths.data_dir() / "server.sock")
    assert [what for _, what in reached if "127.0.0.1" not in what and own_socket not in what] == []
    assert {path: facts for path, facts in fingerprints(home).items() if path in before} == before


def get(address: str, token: str) -> bytes:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def wait_for_a_pass(address: str, token: str) -> None:
    end = time.monotonic() + 20
    while not json.loads(get(f"{address}api/status", token))["sync"]["passes"]:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_watch_sees_what_it_should(notes: Path, tmp_path: Path) -> None:
    program = (
        "import socket, pathlib\n"
        f"pathlib.Path({str(tmp_path / 'elsewhere')!r}).write_text('x')\n"
        "socket.socket().connect_ex(('127.0.0.1', 9))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ)
    assert written(notes, paths.data_dir()) == {str(tmp_path / "elsewhere")}
    assert "socket.connect" in {kind for kind, _ in noted(notes)}
