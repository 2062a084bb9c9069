"""turnlog as a system would run it that has none of what only POSIX has: a simulation of Windows on Linux.

`python -m support.other_system ARGUMENTS` runs the command. Only turnlog's own modules see the poorer `os`, `signal`
and `socket`: the standard library and other packages have their own code for Windows, which is not what is tried here.
"""

from __future__ import annotations

import builtins
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

MISSING_MODULES = frozenset(
    "fcntl resource pwd grp termios tty pty posix syslog crypt spwd curses readline".split()  # noqa: SIM905  # names read best in a line
)
"""Modules that Windows lacks."""

_OS = """
chown chroot ctermid fchdir fchown fork forkpty getegid geteuid getgid getgroups getpgid getpgrp getpriority
getsid getuid killpg lchown lockf major minor mkfifo mknod nice openpty pread preadv pwrite pwritev
register_at_fork sched_getaffinity sched_setaffinity sendfile setegid seteuid setgid setpgid setpriority
setsid setuid statvfs sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid WNOHANG O_NOFOLLOW
O_NONBLOCK O_CLOEXEC O_DIRECTORY
"""

MISSING_NAMES: dict[str, frozenset[str]] = {
    "os": frozenset(_OS.split()),
    "signal": frozenset(
        name
        for name in dir(signal)
        if name.startswith(("SIG", "pthread_", "sig", "setitimer", "alarm", "pause"))
        and name not in ("SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIG_DFL", "SIG_IGN", "signal")
    ),
    "socket": frozenset(["AF_UNIX", "AF_NETLINK", "SO_PEERCRED", "SO_REUSEPORT"]),
}
"""What Windows lacks of modules that it has."""


class _Poorer(ModuleType):
    """A module without some of its names; everything else is the module's own."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_module"]
        if name in MISSING_NAMES[module.__name__]:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(module, name)


_POORER: dict[str, ModuleType] = {module.__name__: _Poorer(module) for module in (os, signal, socket)}

_import = builtins.__import__


def _import_poorer(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    if str((globals or {}).get("__name__", "")).startswith("turnlog"):
        if name in MISSING_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in _POORER:
            return _POORER[name]
    return _import(name, globals, locals, fromlist or (), level)


def install() -> None:
    """Let turnlog's modules, which must not be imported yet, see a system without POSIX."""
    assert not any(name.startswith("turnlog.") for name in sys.modules)
    builtins.__import__ = _import_poorer
    import turnlog.platforms.processes as processes

    setattr(processes, "_BOOT_ID", Path("nothing-there"))  # noqa: B010  # a private name of it


if __name__ == "__main__":
    install()
    from turnlog.__main__ import main

    main()
