"""`serve` as people run it: a real port, logs that are read meanwhile, and an end that leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import zstandard

from support.event_streams import events
from turnlog.errors import NotFoundError, StoreError, TurnlogError
from turnlog.hooks import send
from turnlog.hooks.server_socket import connect
from turnlog.server import DEFAULT_PORT
from turnlog.server.access import TOKEN_FILE, read_token
from turnlog.server.addresses import bind, page_address
from turnlog.server.run import own_socket, serve
from turnlog.server.web_server import SHUTDOWN_SECONDS

pytestmark = pytest.mark.timeout(180)

WINDOW = "/api/sessions/plain:main/window"

RECORD = (
    '{{"type":"user","uuid":"{id}","parentUuid":null,"sessionId":"11111111-1111-4111-8111-111111111111",'
    '"timestamp":"2026-11-20T09:00:0{second}.000Z","cwd":"/work/shop","version":"2.1.329",'
    '"message":{{"role":"user","content":"{text}"}}}}\n'
)

PROGRAM = """
import sys
from pathlib import Path
from turnlog.server import serve

serve(Path(sys.argv[1]), port=int(sys.argv[2]), sync=sys.argv[3] == "sync", host=sys.argv[4], open_browser=False,
      announce=lambda address: print(address, flush=True))
"""


class Served:
    """A running server, and a program that has its token."""

    def __init__(self, process: subprocess.Popen[str], link: str, folder: Path) -> None:
        self.process = process
        self.address, _, self.code = link.partition("#code=")
        self.token = read_token(folder / TOKEN_FILE)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx2.Client(base_url=self.address, headers=headers, trust_env=False)

    def get(self, path: str) -> Any:
        return self.client.get(path).raise_for_status().json()

    def wait_until(self, path: str, holds: Callable[[Any], bool], seconds: float = 20) -> Any:
        """Ask until the answer is right."""
        end = time.monotonic() + seconds
        while not holds(answer := self.get(path)):
            assert time.monotonic() < end, f"still {answer}"
            time.sleep(0.05)
        return answer

    def children(self) -> list[int]:
        task = Path(f"/proc/{self.process.pid}/task")
        return [int(pid) for file in task.glob("*/children") for pid in file.read_text().split()]


@contextmanager
def serving(store: Path, *, sync: bool = False, host: str = "127.0.0.1") -> Generator[Served]:
    command = [sys.executable, "-c", PROGRAM, str(store), "0", "sync" if sync else "no", host]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    served = Served(process, process.stdout.readline().strip(), store.parent)
    try:
        yield served
    finally:
        served.client.close()
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def logs(home: Path) -> Path:
    """A log of Claude Code with one prompt, in the home that the server will look at."""
    folder = home / ".claude" / "projects" / "-work-shop"
    folder.mkdir(parents=True)
    log = folder / "11111111-1111-4111-8111-111111111111.jsonl"
    log.write_text(RECORD.format(id="a1", second=1, text="Please repair the shop window"))
    return log


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_real_server_answers(library: Path) -> None:
    with serving(library) as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", served.address)
        assert len(served.code) == 22
        assert served.get("/api/sessions")["total"] == 3
        assert "server" not in served.client.get("/api/status").headers
        wrong = served.client.get("/api/status", headers={"Host": "evil.example"})
        assert wrong.status_code == 421
        with served.client.stream("GET", WINDOW, headers={"Accept-Encoding": "zstd"}) as answer:
            assert answer.headers["content-encoding"] == "zstd"
            frames = b"".join(answer.iter_raw())
        window = zstandard.ZstdDecompressor().stream_reader(frames, read_across_frames=True).read()
        assert json.loads(window) == served.get(WINDOW)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_only_the_token_the_page_and_the_own_socket_are_answered(tmp_path: Path, host: str) -> None:
    """R-C16, C-a: 401 for everybody else, on loopback too."""
    with serving(tmp_path / "turnlog.db", host=host) as served, httpx2.Client(trust_env=False) as stranger:
        status = f"{served.address}api/status"
        assert stranger.get(status).status_code == 401
        assert stranger.get(status, headers={"Authorization": f"Bearer {served.token}"}).status_code == 200
        key = stranger.post(f"{served.address}api/sign-in", json={"code": served.code}).json()["key"]
        assert stranger.get(status, headers={"Authorization": f"Bearer {key}"}).status_code == 200
        assert key != served.token
        again = stranger.post(f"{served.address}api/sign-in", json={"code": served.code})
        assert (again.status_code, "turnlog open" in again.text) == (403, True)


def test_a_browser_stays_signed_in_when_the_server_is_started_again(tmp_path: Path) -> None:
    keys: list[str] = []
    for _ in range(2):
        with serving(tmp_path / "turnlog.db") as served:
            keys.append(served.client.post("/api/sign-in", json={"code": served.code}).json()["key"])
    assert keys[0] == keys[1]


def test_logs_are_read_now_and_as_they_grow(tmp_path: Path, logs: Path) -> None:
    with serving(tmp_path / "turnlog.db", sync=True) as served:
        status = served.wait_until("/api/status", lambda found: found["sync"]["passes"] > 0)
        assert status["sync"]["state"] == "waiting"
        assert status["sync"]["error"] is None
        assert status["store"]["sessions"] == 1
        assert served.get("/api/search?q=repair")["items"][0]["hits"][0]["snippet"]
        with logs.open("a") as file:
            file.write(RECORD.format(id="a2", second=2, text="And the door"))
        served.wait_until("/api/status", lambda found: found["change_sequence"] > status["change_sequence"])
        found = served.wait_until("/api/search?q=door", lambda answer: bool(answer["items"]))
        assert found["items"][0]["hits"][0]["message_id"] == "a2"


def test_an_appended_line_is_reported_with_its_content(tmp_path: Path, logs: Path) -> None:
    """R-S39: from the agent's file to who watches the session, without a request between."""
    with serving(tmp_path / "turnlog.db", sync=True) as served:
        served.wait_until("/api/status", lambda found: found["sync"]["passes"] > 0)
        path = "/api/sessions/claude-code%3A11111111-1111-4111-8111-111111111111/events"
        with events(served.address, path, token=served.token) as stream:
            next(stream)
            with logs.open("a") as file:
                file.write(RECORD.format(id="a2", second=2, text="And the door"))
            (message,) = next(stream).data["items"]
        assert [part["text"] for part in message["parts"]] == ["And the door"]


def test_a_hook_finds_the_server_and_its_event_is_read_at_once(tmp_path: Path) -> None:
    """R-C18: from the command that the agent starts to who watches, and what comes when the server is gone waits."""
    hook = [sys.executable, "-I", "-S", send.__file__, "claude-code", str(tmp_path)]
    event = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/work/shop", "prompt_id": "p1"}
    spool = tmp_path / "hooks" / "claude-code" / "s1.jsonl"
    with serving(tmp_path / "turnlog.db") as served:
        assert stat.S_IMODE((tmp_path / send.SOCKET).stat().st_mode) == 0o600
        with events(served.address, "/api/events", token=served.token) as stream:
            next(stream)
            subprocess.run(hook, input=json.dumps({**event, "prompt": "Repair it"}).encode(), check=True)
            (session,) = next(stream).data["items"]
        assert (session["id"], session["project"]["path"]) == ("claude-code:s1", "/work/shop")
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(15)
        assert not (tmp_path / send.SOCKET).exists()
    spooled = spool.read_bytes()
    subprocess.run(hook, input=json.dumps({**event, "prompt_id": "p2", "prompt": "And the door"}).encode(), check=True)
    assert spool.read_bytes().startswith(spooled)
    with serving(tmp_path / "turnlog.db", sync=True) as served:
        found = served.wait_until("/api/search?q=door", lambda answer: bool(answer["items"]))
        assert found["items"][0]["session"]["id"] == "claude-code:s1"


def test_the_own_socket_needs_no_token_and_a_port_cannot_pretend_to_be_it(tmp_path: Path) -> None:
    store = tmp_path / "turnlog.db"
    with serving(store, host="0.0.0.0") as served:
        request = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%b\r\n"
        with connect(tmp_path) as own:
            own.sendall(request % b"")
            assert own.recv(64).startswith(b"HTTP/1.1 200 ")
        port = int(served.address.rstrip("/").rpartition(":")[2])
        for pretended in (b"", b"turnlog.from_own_socket: 1\r\n", b"X-Forwarded-For: unix:\r\nForwarded: for=unix\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(request % pretended)
                assert stranger.recv(64).startswith(b"HTTP/1.1 401 ")


def test_the_name_of_a_killed_server_is_no_server_and_the_next_takes_it(tmp_path: Path) -> None:
    store = tmp_path / "turnlog.db"
    with serving(store) as served:
        served.process.kill()
        served.process.wait()
    assert (tmp_path / send.SOCKET).is_socket()
    with pytest.raises(NotFoundError):
        connect(tmp_path)
    with serving(store), connect(tmp_path):
        pass


def test_a_store_whose_folder_cannot_hold_a_socket_is_served(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert own_socket(tmp_path / "file") is None
    assert own_socket(tmp_path / "file" / "below") is None


def test_open_streams_do_not_hold_up_the_end(library: Path) -> None:
    with serving(library) as served, events(served.address, "/api/events", token=served.token) as stream:
        next(stream)
        started = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(15)
        assert time.monotonic() - started < SHUTDOWN_SECONDS


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything(tmp_path: Path, logs: Path, sign: signal.Signals) -> None:
    with serving(tmp_path / "turnlog.db", sync=True) as served:
        served.wait_until("/api/status", lambda found: found["sync"]["passes"] > 0)
        children = served.children()
        assert children
        # As a terminal does it: Ctrl-C reaches the whole group.
        os.killpg(served.process.pid, sign) if sign is signal.SIGINT else served.process.send_signal(sign)
        served.process.wait(15)
        assert served.process.returncode in (0, -signal.SIGTERM)
        assert not any(is_alive(pid) for pid in children)


def test_nothing_outlives_a_server_that_was_killed(tmp_path: Path, logs: Path) -> None:
    with serving(tmp_path / "turnlog.db", sync=True) as served:
        served.wait_until("/api/status", lambda found: found["sync"]["passes"] > 0)
        children = served.children()
        assert children
        served.process.kill()
        wait_until_gone(children)


# -- addresses


def test_the_default_port_is_left_when_it_is_taken() -> None:
    with bind("127.0.0.1", None) as first, bind("127.0.0.1", None) as second:
        ports = {first.getsockname()[1], second.getsockname()[1]}
        assert len(ports) == 2
        assert first.getsockname()[1] == DEFAULT_PORT or DEFAULT_PORT not in ports


def test_a_port_that_was_requested_and_is_taken_is_an_error() -> None:
    with (
        bind("127.0.0.1", 0) as taken,
        pytest.raises(TurnlogError, match=r"cannot listen on .*: Address already in use$"),
    ):
        bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(TurnlogError, match="cannot listen on"):
        bind("192.0.2.1", None)


def test_answers_do_not_wait_for_the_network() -> None:
    """asyncio switches Nagle's delay off only for sockets that say they are TCP."""
    with bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_kept_connection_answers_at_once(library: Path) -> None:
    with serving(library) as served:
        times: list[float] = []
        for _ in range(60):
            start = time.perf_counter()
            served.get("/api/agents")
            times.append(time.perf_counter() - start)
    # An answer in two packets waits 40 ms for an acknowledgement, nearly every time. A busy machine delays some.
    assert sorted(times)[len(times) // 3] < 0.03


def test_addresses_are_written_as_browsers_want_them() -> None:
    assert page_address("127.0.0.1", 1) == "http://127.0.0.1:1/"
    assert page_address("::1", 1) == "http://[::1]:1/"
    assert page_address("localhost", 1) == "http://localhost:1/"
    assert page_address("0.0.0.0", 1) == f"http://{socket.gethostname()}:1/"


def test_without_a_token_it_is_on_loopback_and_takes_no_prompts(tmp_path: Path) -> None:
    for host, prompts in (("0.0.0.0", False), ("127.0.0.1", True)):
        with pytest.raises(TurnlogError, match="--no-token"):
            serve(tmp_path / "turnlog.db", use_token=False, open_browser=False, host=host, prompts=prompts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "late"), [("turnlog.server.run", "fastapi uvicorn pydantic"), ("turnlog.server.app", "turnlog.chat")]
)
def test_what_is_not_needed_for_the_first_answer_is_imported_after_it(module: str, late: str) -> None:
    """Logs are being read while the web framework is imported; conversion for chats follows the first answer."""
    script = f"import sys, {module}; print(*[name for name in {late.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_store_that_cannot_be_opened_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are read before the store is opened here."""
    path = tmp_path / "turnlog.db"
    path.write_bytes(b"no database" * 1000)
    started: list[subprocess.Popen[bytes]] = []

    class Kept(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr("turnlog.server.background.subprocess.Popen", Kept)
    with pytest.raises(StoreError):
        serve(path, port=0, use_token=False, open_browser=False)
    assert [each.poll() is not None for each in started] == [True]


def test_sockets_of_servers_that_were_killed_while_they_started_go(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, young, running = (tmp_path / f"server.sock.{pid}" for pid in (ended.pid, ended.pid + 1, os.getppid()))
    for path in (left, young, running):
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    for path in (left, running):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    own = own_socket(tmp_path)
    assert own is not None
    try:
        assert sorted(path.name for path in tmp_path.glob("server.sock.*")) == sorted(
            [young.name, running.name, f"server.sock.{os.getpid()}"]
        )
    finally:
        own.withdraw()
        own.listener.close()
