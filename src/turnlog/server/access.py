"""Who may read: the access token of a store, the page's key, and the one-time codes that hand that key to a browser.

The token is for programs: it is in a file that only the user can read. A browser never gets it. It gets the page's
key, which is made of the token and is no more than proof that its user was signed in by a link; the link has a code
that works once. Another user of this machine may see that link in a list of processes, or take over the port of a
server that has ended and be sent the key by a page that is still open: neither helps, because what bears a code or the
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
from turnlog.server.peers import can_know_users

TOKEN_BYTES = 32

TOKEN_FILE = "access_token"

_LONGEST_TOKEN = 4096


def new_token() -> str:
    """256 random bits, as they go into a header."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def own_token(folder: Path) -> str:
    """The token of the stores in a folder, made when there is none yet.

    It stays the same, so that a browser that is signed in stays so. Where the folder cannot be written it lasts as
    long as the server.

    Raises:
        TurnlogError: There is one that somebody else could know.
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


def read_token(path: Path) -> str:
    """The token in a file that only the user can read.

    Raises:
        FileNotFoundError: There is no such file.
        TurnlogError: It cannot be used: others can read it, or it holds no token.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TurnlogError(f"cannot read the access token {path}: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise TurnlogError(f"the access token {path} is not a file of yours")
        if status.st_mode & 0o077:
            raise TurnlogError(f"other users can read the access token {path}: delete it to get another one")
        token = os.read(descriptor, _LONGEST_TOKEN).strip()
    finally:
        os.close(descriptor)
    if not token or not token.isascii() or not token.decode().isprintable():
        raise TurnlogError(f"the access token {path} is empty or no text")
    return token.decode()


def page_key(token: str) -> str:
    """What a browser keeps: it proves that it was signed in, and is not the token."""
    return hmac.new(token.encode(), b"turnlog page", hashlib.sha256).hexdigest()


# -- codes

CODE_BYTES = 16

CODE_SECONDS = 600.0
"""How long a code works: enough to carry a link to another window, and nothing that is found later helps."""

MOST_CODES = 16

WRONG_CODES = 10
"""How many wrong codes one address may try in `WRONG_CODES_SECONDS`."""

WRONG_CODES_SECONDS = 60.0

_MOST_ADDRESSES = 1000

CODE_FIELD = "code"
"""Of the fragment of a link, which no browser sends to a server."""


class WrongCodeError(Exception):
    """The code is wrong, was used, or is too old."""


class TooManyCodesError(Exception):
    """This address has tried too many wrong codes; it holds after how many seconds it may try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class SignInLink(NamedTuple):
    """What signs a browser in, once."""

    address: str
    """The page, with a code in its fragment."""
    file: Path | None = None
    """A page that leads there, to be opened in its place where a list of processes would tell others the address."""


class _Code(NamedTuple):
    ends: float
    file: Path | None


class SignIn:
    """The codes of one server. For any thread."""

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
            opened: Whether a program will be told to open it. Where the system does not tell whose connections are
                whose, others could be faster with what they see in a list of processes: there it gets a file.
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
        """The page's key for a code, which is spent then; `client` is the address that tries it.

        Raises:
            WrongCodeError: It is none.
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
            # By its hash: how long the search takes tells nothing about codes.
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
