"""One server of OpenCode or Kilo CLI for all sessions: a start takes them 5 to 15 s of CPU, a prompt much less.

A server reads the session from its database for each prompt, as a start does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from clis import Cli
from run import Trouble, environment_of, prepare, program_of

STARTS_IN = 300
"""Seconds; a busy machine needs most of a minute."""


class AgentServer:
    """An agent that listens for prompts, in one HOME. Each prompt may name another model server."""

    def __init__(self, cli: Cli, home: Path) -> None:
        self._cli = cli
        self.home = home
        self._model_port = 0
        # The agent reads the address of its model once: what comes there goes on to the model server of the moment.
        self._relay = socket.create_server(("127.0.0.1", 0))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> AgentServer:
        url = f"http://127.0.0.1:{self._relay.getsockname()[1]}"
        prepare(self._cli, self.home, url)
        self._process = subprocess.Popen(
            [program_of(self._cli), *(word.replace("{PORT}", str(self._port)) for word in self._cli.serve)],
            cwd=self.home / "work",
            env=environment_of(self._cli, self.home, url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + STARTS_IN
        while time.monotonic() < end and self._process.poll() is None:
            try:
                self._ask("/session", None, 10)
            except OSError:
                time.sleep(0.5)
            else:
                return self
        self.__exit__(None, None, None)
        raise Trouble("its server did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._relay.close()

    def prompt(self, url: str, arguments: Sequence[str], seconds: float) -> None:
        """Do what a start with these arguments would (`Cli.resume`): send the prompt in the session."""
        self._model_port = int(url.rpartition(":")[2])
        session = arguments[self._cli.resume.index("{SESSION}")]
        text = arguments[self._cli.resume.index("{PROMPT}")]
        parts = [{"type": "text", "text": text}]
        body = {"model": {"providerID": "rig", "modelID": "rig"}, "parts": parts}
        try:
            self._ask(f"/session/{session}/message", body, seconds)
        except OSError as error:
            raise Trouble(f"its server did not answer: {error}") from None

    def _ask(self, path: str, body: object, seconds: float) -> None:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=seconds) as response:
            response.read()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._relay.accept()
            except OSError:
                return
            try:
                model = socket.create_connection(("127.0.0.1", self._model_port))
            except OSError:
                client.close()
                continue
            for pair in ((client, model), (model, client)):
                threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # Either side has gone.
        source.close()
        target.close()
