"""Access: the token of a store, the page's key, and the one-time codes that give that key to a browser.

The token is for programs: it is in a file that only the user can read. A browser never gets it. It gets the page's key,
which is derived from the token and proves no more than that its user signed in with a link; the link has a code that
works once. Another user of this machine may see that link in a list of processes, or take over the port of a server
that has ended and receive the key from a page that is still open. Neither helps, because requests with a code or the
page's key must not come from a program of another user (`peers`).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import NamedTuple

from turnlog.atomic_files import write_atomically
from turnlog.errors import TurnlogError
from turnlog.platforms.connections import can_know_users
from turnlog.platforms.files import BINARY, NO_FOLLOW, NO_WAIT, is_own

TOKEN_BYTES = 32

TOKEN_FILE = "access_token"

SHORTEST_TOKEN = 16
"""Characters of the shortest access token: with fewer, other users of the machine could try all."""

_LONGEST_TOKEN = 4096


def new_token() -> str:
    """256 random bits, encoded for a header."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def own_token(folder: Path) -> str:
    """The token of the stores in a folder, created if there is none.

    It does not change, so a browser that is signed in stays so. If the folder cannot be written, it is valid until the
    server ends.

    Raises:
        TurnlogError: The file exists, but others could know the token in it.
    """
    path = folder / TOKEN_FILE
    try:
        return read_token(path)
    except FileNotFoundError:
        pass
    token = new_token()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, f"{token}\n".encode(), mode=0o600)
    return token


def ensure_long_enough(token: str, name: str) -> str:
    """The token. Raises TurnlogError if it is so short that others could guess it; `name` says where it is from."""
    if len(token) < SHORTEST_TOKEN:
        raise TurnlogError(
            f"the access token of {name} is shorter than {SHORTEST_TOKEN} characters:"
            ' python3 -c "import secrets; print(secrets.token_urlsafe())" makes one'
        )
    return token


def read_token(path: Path) -> str:
    """The token in a file that only the user can read.

    Raises:
        FileNotFoundError: There is no such file.
        TurnlogError: Others can read it, or it contains no token, or one that is too short.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | BINARY | NO_FOLLOW | NO_WAIT)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TurnlogError(f"cannot read the access token {path}: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not is_own(status):
            raise TurnlogError(f"the access token {path} is not a file of yours")
        if status.st_mode & 0o077:
            raise TurnlogError(f"other users can read the access token {path}: delete it to get another one")
        token = os.read(descriptor, _LONGEST_TOKEN).strip()
    finally:
        os.close(descriptor)
    if not token or not token.isascii() or not token.decode().isprintable():
        raise TurnlogError(f"the access token {path} is empty or no text")
    return ensure_long_enough(token.decode(), str(path))


def page_key(token: str) -> str:
    """The key that a browser keeps: it proves that it was signed in, and is not the token."""
    return hmac.new(token.encode(), b"turnlog page", hashlib.sha256).hexdigest()


# -- codes

CODE_BYTES = 16

CODE_SECONDS = 600.0
"""Seconds for which a code works: enough to carry a link to another window, and useless if found later."""

MOST_CODES = 16

WRONG_CODES = 10
"""Maximum number of wrong codes from one address in `WRONG_CODES_SECONDS`."""

WRONG_CODES_SECONDS = 60.0

_MOST_ADDRESSES = 1000

CODE_FIELD = "code"
"""The field with the code in the fragment of a link. Browsers send no fragment to a server."""


class WrongCodeError(Exception):
    """The code is wrong, was used, or is too old."""


class TooManyCodesError(Exception):
    """This address has tried too many wrong codes; `seconds` says when it may try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class SignInLink(NamedTuple):
    """A link that signs a browser in, once."""

    address: str
    """The page, with a code in its fragment."""
    file: Path | None = None
    """A page that leads there. Opening it instead keeps the address out of lists of processes, which others can see."""


class _Code(NamedTuple):
    ends: float
    file: Path | None


class SignIn:
    """The codes of one server. Any thread may use it."""

    def __init__(self, token: str, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without a code.

        Args:
            token: The access token of the server.
            folder: Where files of links go; it must exist once there are any.
            clock: Seconds.
        """
        self._key = page_key(token)
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: dict[bytes, _Code] = {}
        self._wrong: dict[str, deque[float]] = {}

    def link(self, page: str, *, opened: bool) -> SignInLink:
        """A link to the page at this address, with a new code.

        Args:
            page: The address.
            opened: Whether a program will be started to open it. If the system does not say who owns a connection,
                another user could see the link in a list of processes and be faster: then a file is opened instead.
        """
        code = secrets.token_urlsafe(CODE_BYTES)
        address = f"{page}#{CODE_FIELD}={code}"
        file = self._write(address) if opened and not can_know_users() else None
        with self._lock:
            self._forget_old()
            while len(self._codes) >= MOST_CODES:
                self._drop(next(iter(self._codes)))
            self._codes[_hashed(code)] = _Code(self._clock() + CODE_SECONDS, file)
        return SignInLink(address, file)

    def redeem(self, code: str, client: str) -> str:
        """Exchange a code for the page's key; `client` is the address of the client.

        Raises:
            WrongCodeError: The code is invalid.
            TooManyCodesError: This address has tried too many.
        """
        now = self._clock()
        with self._lock:
            self._forget_old()
            wrong = self._wrong.get(client, deque[float]())
            while wrong and wrong[0] <= now - WRONG_CODES_SECONDS:
                wrong.popleft()
            if len(wrong) >= WRONG_CODES:
                raise TooManyCodesError(wrong[0] + WRONG_CODES_SECONDS - now)
            # Looked up by its hash, so that the duration of the lookup reveals nothing about codes.
            if (hashed := _hashed(code)) in self._codes:
                self._drop(hashed)
                return self._key
            wrong.append(now)
            self._wrong.pop(client, None)
            while len(self._wrong) >= _MOST_ADDRESSES:
                del self._wrong[next(iter(self._wrong))]
            self._wrong[client] = wrong
        raise WrongCodeError

    def close(self) -> None:
        """End all codes."""
        with self._lock:
            for hashed in list(self._codes):
                self._drop(hashed)

    def _forget_old(self) -> None:
        now = self._clock()
        for hashed in [hashed for hashed, code in self._codes.items() if code.ends <= now]:
            self._drop(hashed)

    def _drop(self, hashed: bytes) -> None:
        file = self._codes.pop(hashed).file
        if file is not None:
            with suppress(OSError):
                file.unlink()

    def _write(self, address: str) -> Path | None:
        path = self._folder / f"sign-in-{secrets.token_hex(4)}.html"
        try:
            write_atomically(path, _LEADING.format(address=escape(address)).encode(), mode=0o600)
        except OSError:
            return None
        return path


_LEADING = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>turnlog</title>
<p><a href="{address}">Open turnlog</a></p>
"""


def _hashed(code: str) -> bytes:
    return hashlib.sha256(code.encode(errors="replace")).digest()
