"""OpenCode's plugin hands events to the server's socket, to nothing else, and else writes the spool."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnlog.agent_settings.changes import SettingsPlan
from turnlog.agents import agents_with_hooks
from turnlog.hooks import send
from turnlog.hooks.server_socket import ServerSocket
from turnlog.hooks.settings import plan_install

TELL = """
const { Turnlog } = await import(process.argv[2])
const plugin = await Turnlog({ directory: "/work/shop" })
await plugin.event({ event: { type: "session.created", properties: { info: { id: "ses_1", title: "Grüße" } } } })
"""


def tell(data: Path) -> None:
    """Load the plugin as OpenCode does, and let it tell of one event."""
    plan = plan_install(agents_with_hooks()["opencode"], data)
    assert isinstance(plan, SettingsPlan)
    assert plan.after is not None
    plugin = data / "plugin.mjs"
    plugin.write_bytes(plan.after)
    program = data / "tell.mjs"
    program.write_text(TELL)
    subprocess.run(["node", str(program), str(plugin)], check=True, timeout=20)


def spooled(data: Path) -> list[str]:
    return [
        json.loads(line)["event"]["title"]
        for file in data.glob("hooks/opencode/*")
        for line in file.read_text().splitlines()
    ]


@contextmanager
def listening(data: Path, answer: bytes) -> Generator[list[bytes]]:
    heard: list[bytes] = []
    own = ServerSocket(data)
    with own.listener as listener:
        listener.listen()
        own.announce()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while not b"".join(heard).endswith(b"}"):
                    heard.append(connection.recv(65536))
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield heard
        thread.join(5)


def test_a_running_server_is_reported(home: Path, tmp_path: Path) -> None:
    with listening(tmp_path, b"HTTP/1.1 202 Accepted\r\n\r\n") as heard:
        tell(tmp_path)
    head, _, body = b"".join(heard).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/hooks/opencode?at=")
    assert f"Content-Length: {len(body)}".encode() in head
    assert json.loads(body)["title"] == "Grüße"
    assert spooled(tmp_path) == []


def test_what_no_server_takes_is_spooled(home: Path, tmp_path: Path) -> None:
    with listening(tmp_path, b"HTTP/1.1 500 Internal Server Error\r\n\r\n"):
        tell(tmp_path)
    assert spooled(tmp_path) == ["Grüße"]
    tell(tmp_path)  # its name is still there, and nobody listens
    assert spooled(tmp_path) == ["Grüße", "Grüße"]


def test_who_listens_on_a_port_learns_nothing(home: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as thief:
        thief.settimeout(0.2)
        (tmp_path / "server").write_text(f"127.0.0.1\n{thief.getsockname()[1]}\n1\ns3cret\n")
        tell(tmp_path)
        try:
            thief.accept()
            raise AssertionError("the plugin asked a port")
        except TimeoutError:
            pass
    assert spooled(tmp_path) == ["Grüße"]


def test_a_folder_whose_name_is_too_long_for_a_socket_spools(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 60) / ("e" * 60)
    folder.mkdir(parents=True)
    own = ServerSocket(folder)
    with own.listener as listener:
        listener.listen()
        own.announce()
        tell(folder)
    assert (folder / send.SOCKET).is_socket()
    assert spooled(folder) == ["Grüße"]
