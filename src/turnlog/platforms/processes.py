"""Which process is which, its priority and limits, and programs that are stopped with all that they started."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypedDict

if TYPE_CHECKING:
    import subprocess
    from asyncio.subprocess import Process

# -- identity

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_START_FIELD: Final = 19
"""Field of `/proc/PID/stat`, counted from the one after the program's name: the start of the process in clock ticks."""


class ProcessIdentity(NamedTuple):
    """A process of this machine, past or present."""

    pid: int
    boot_id: str | None
    """Id of the boot; None where the system has none, and `start` is a time."""
    # A pid is used again after a reboot or a wrap-around: only all three together name one process.
    start: str | None


def this_process() -> ProcessIdentity:
    """The identity of the current process."""
    pid = os.getpid()
    return ProcessIdentity(pid, _boot_id(), _start_of(pid))


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this process runs now, on this machine and since this boot."""
    return identity.boot_id == _boot_id() and identity.start is not None and _start_of(identity.pid) == identity.start


def is_running(pid: int) -> bool:
    """Whether any process of this machine has this id."""
    return _start_of(pid) is not None


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None


def _start_of(pid: int) -> str | None:
    """When a process began; None for one that does not exist or is a zombie."""
    if not _BOOT_ID.exists():
        return _time_of(pid)
    try:
        # The program's name is in parentheses and may hold anything, parentheses too: split at the last one.
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].decode().split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else fields[_START_FIELD - 1]


def _time_of(pid: int) -> str | None:
    # Not where processes are files, so that a list of sessions does not import it there.
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except psutil.Error:
        return None


def runs_program(pid: int, name: str) -> bool:
    """Whether a process runs whose command line has this name; where it cannot be read, whether it runs."""
    try:
        os.kill(pid, 0)
        # One that has ended and nobody waited for has no command line.
        return not Path("/proc/self").exists() or name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


# -- priority and limits

_OWN_GROUPS: Final = Path("/proc/self/cgroup")

_CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")

_QUOTA: Final = re.compile(r"([0-9]+) ([1-9][0-9]*)")


def lower_priority(niceness: int) -> None:
    """Let other processes go first, those with a lower niceness; does nothing on Windows.

    A process that is nicer already stays as it is: what a background process starts would otherwise get almost no time
    on a busy machine.
    """
    if hasattr(os, "nice"):
        os.nice(max(0, niceness - os.nice(0)))


def usable_cores() -> int:
    """The processors that this process may use; a share of one counts as one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # "max 100000", or microseconds in each period of so many.
    quotas = [_QUOTA.fullmatch(each) for each in _control_group_limits("cpu.max")]
    shares = [-(-int(quota[1]) // int(quota[2])) for quota in quotas if quota is not None]
    return max(1, min([cores, *shares]))


def memory() -> int | None:
    """Bytes of memory that the process may use, by its machine or container; None where the system does not say."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return min([found, *(int(each) for each in _control_group_limits("memory.max") if each.isdecimal())])


def _control_group_limits(name: str) -> list[str]:
    """A limit of this process's control group (Linux, version 2) and of those above it, which hold as well.

    Files and their contents: `Documentation/admin-guide/cgroup-v2.rst` of Linux.
    """
    try:
        lines = _OWN_GROUPS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    found: list[str] = []
    for folder in () if own is None else (_CONTROL_GROUPS / own, *(_CONTROL_GROUPS / own).parents):
        if not folder.is_relative_to(_CONTROL_GROUPS):
            break
        with suppress(OSError):
            found.append((folder / name).read_text(errors="replace").strip())
    return found


def most_descriptors() -> int | None:
    """How many files and connections the process may have open; None without such a limit."""
    try:
        import resource
    except ImportError:
        return None
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if descriptors == resource.RLIM_INFINITY else descriptors


def raise_descriptors(wanted: int) -> None:
    """Let the process have so many files and connections open, as far as the system allows it."""
    try:
        import resource
    except ImportError:
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    if resource.RLIM_INFINITY != now < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


# -- programs that turnlog starts


class GroupArguments(TypedDict, total=False):
    """Arguments of `Popen` for a program with a group of its own."""

    start_new_session: bool
    creationflags: int


def in_own_group() -> GroupArguments:
    """Arguments of `Popen`: Ctrl-C in the terminal does not reach the program, and `stop_group` reaches all of it."""
    import subprocess

    flag = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", None)
    return {"start_new_session": True} if flag is None else {"creationflags": flag}


How = Literal["interrupt", "quit", "terminate", "kill"]
"""How a program is asked to end; `kill` does not ask."""


def stop_group(process: subprocess.Popen[bytes] | Process, how: How) -> None:
    """Ask a program that was started `in_own_group`, and all that it started, to end; it may have ended already.

    On Windows an interrupt is Ctrl-Break, and the others end the program alone.
    """
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            # An agent installed by npm is the child of a wrapper, and outlives it.
            os.killpg(process.pid, _signal(how))
        else:
            process.send_signal(
                getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM) if how == "interrupt" else signal.SIGTERM
            )


def _signal(how: How) -> signal.Signals:
    return {
        "interrupt": signal.SIGINT,
        "quit": signal.SIGQUIT,
        "terminate": signal.SIGTERM,
        "kill": signal.SIGKILL,
    }[how]


def interrupt(pid: int) -> None:
    """Ask a process that this one did not start to end. Raises OSError."""
    os.kill(pid, signal.SIGINT)


class Account(NamedTuple):
    """A user of this machine, and the user's group."""

    user: int
    group: int


def account(name: str) -> Account:
    """The user of this name. Raises KeyError where there is none, as always on Windows."""
    try:
        import pwd
    except ModuleNotFoundError:
        raise KeyError(name) from None
    found = pwd.getpwnam(name)
    return Account(found.pw_uid, found.pw_gid)
