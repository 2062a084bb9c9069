"""Which user's program is at the other end of a connection within this machine, as the Linux kernel knows it.

The kernel is asked about one connection (sock_diag(7)), which is fast however many there are. If that is not allowed,
as in some containers, its tables are read (`/proc/net/tcp`, proc(5)), which takes milliseconds. Other systems do not
say it.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from pathlib import Path
from typing import NamedTuple

Address = tuple[str, int]
"""An IP address and a port."""

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

_NOBODY = -1
"""For a connection that its program has closed: the kernel reports root then, whoever owned it."""


def has_local_sockets() -> bool:
    """Whether a server can listen at a path, for programs of the same user; not on Windows."""
    return hasattr(socket, "AF_UNIX")


def local_socket() -> socket.socket:
    """A socket for a path. Raises OSError where there are none."""
    if not has_local_sockets():
        raise OSError("this platform has no Unix sockets")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def is_local(found: socket.socket) -> bool:
    """Whether a connection came to a server that listens at a path."""
    return found.family == getattr(socket, "AF_UNIX", None)


def can_know_users() -> bool:
    """Whether this system can say who owns a connection."""
    return _TABLES[0].exists()


def user_of(client: Address, server: Address) -> int | None:
    """The id of the user who owns the client's end of a TCP connection; -1 if it is closed there.

    None if it is on another machine, or the system does not say.
    """
    try:
        end = _ask_for(client, server) or _look_for(client, server)
    except (OSError, ValueError, AttributeError):  # another system, an address that is none
        return None
    if end is None:
        return None
    return end.user if end.inode else _NOBODY


class _End(NamedTuple):
    """One end of a connection, as the kernel reports it."""

    user: int
    inode: int


# -- asked for, as in linux/inet_diag.h

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ERROR = 2
_ANY = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_ANSWER = struct.Struct("=BBBB48sIIIII")
_PORTS = struct.Struct("!HH")


def _ask_for(client: Address, server: Address) -> _End | None:
    """Ask the kernel for the client's end by its addresses; None if it does not know it, or cannot be asked."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    ports = _PORTS.pack(client[1], server[1])
    ends = b"".join(ipaddress.ip_address(end[0]).packed.ljust(16, b"\0") for end in (client, server))
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, _ANY) + ports + ends + struct.pack("=III", 0, _ANY, _ANY)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(1)
            kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
            answer = kernel.recv(4096)
    except OSError:
        return None
    if len(answer) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(answer)[1] == _ERROR:
        return None
    *_, where, _, _, _, user, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    # If there is no such connection, the kernel may return who listens on the client's port.
    return _End(user, inode) if where[:4] == ports else None


# -- looked for in the tables


def _look_for(client: Address, server: Address) -> _End | None:
    wanted = {
        (f"{local}:{client[1]:04X}", f"{remote}:{server[1]:04X}")
        for local, remote in zip(_as_in_tables(client[0]), _as_in_tables(server[0]), strict=False)
    }
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if (fields[1], fields[2]) in wanted:
                return _End(int(fields[7]), int(fields[9]))
    return None


def _as_in_tables(address: str) -> tuple[str, ...]:
    """An address in the form of these tables; an IPv4 address also as an IPv6 socket sees it."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        return (_words(found.packed),)
    return _words(found.packed), _words(b"\0" * 10 + b"\xff\xff" + found.packed)


def _words(packed: bytes) -> str:
    words = (packed[place : place + 4] for place in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
