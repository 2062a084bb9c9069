"""Lets the system start the agent with every login: a systemd user unit, or a launchd file."""

from __future__ import annotations

import plistlib
import shlex
import sys
from pathlib import Path
from typing import Final

from turnlog.atomic_files import write_atomically
from turnlog.errors import TurnlogError
from turnlog.paths import home

_UNIT: Final = """[Unit]
Description=turnlog: sends agent sessions to the hub

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=10

[Install]
WantedBy=default.target
"""


def install_service(store_path: Path) -> tuple[Path, list[str]]:
    """Write the file for this system; return its path and the commands that start it.

    Raises TurnlogError on a system that has neither systemd nor launchd.
    """
    command = [sys.executable, "-P", "-m", "turnlog", "hub", "agent", "--store", str(store_path.absolute())]
    if sys.platform == "darwin":
        path = home() / "Library" / "LaunchAgents" / "turnlog.hub.plist"
        text = plistlib.dumps(
            {"Label": "turnlog.hub", "ProgramArguments": command, "RunAtLoad": True, "KeepAlive": True}
        )
        commands = [f"launchctl load -w {shlex.quote(str(path))}"]
    elif sys.platform.startswith("linux"):
        path = home() / ".config" / "systemd" / "user" / "turnlog-hub.service"
        # systemd reads % and $ in a command.
        quoted = " ".join(shlex.quote(word.replace("%", "%%").replace("$", "$$")) for word in command)
        text = _UNIT.format(command=quoted).encode()
        commands = [
            "systemctl --user daemon-reload",
            "systemctl --user enable --now turnlog-hub",
            "loginctl enable-linger        # also without a login",
        ]
    else:
        raise TurnlogError("there is no service for this system: start `turnlog hub agent` yourself")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path, commands
