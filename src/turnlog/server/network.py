"""Who may ask: host, site and access token of every request, and the headers of every answer.

A server on loopback is open to every web page that the same browser shows, and to every user of the machine. What
protects it is checked here and nowhere else, before any route runs: the Host header (a page can point a name of its
own at 127.0.0.1, but cannot change the name the browser sends), the site that a request comes from, and what proves
that the user has allowed it (`access`). The page itself holds no data: only what is below `/api` needs that.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog.server import Settings
from turnlog.server.access import page_key
from turnlog.server.addresses import LOOPBACK_NAMES, is_loopback
from turnlog.server.errors import error_response
from turnlog.server.peers import Peer

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(:\d{1,5})?", re.ASCII)

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SIGN_IN = "/api/sign-in"
"""Where a browser hands in the code of a link: the only address of the API that needs no token."""

PEER = "turnlog.peer"
"""Key of an ASGI scope, which the server makes and no client: the `Peer` of the connection, where it is known."""

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    # No other site may show a picture of ours or read an answer, not even without looking into it.
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    type: str
    message: str


def require_token(settings: Settings) -> None:
    """Raise ValueError for an address off loopback without a token, and for prompts there or without one."""
    if not settings.token and not is_loopback(settings.host):
        raise ValueError(f"a server on {settings.host} needs a token")
    if settings.prompts and (not settings.token or not is_loopback(settings.host)):
        raise ValueError("a server that takes prompts is on loopback, and needs a token")


def peer_of(scope: Scope) -> Peer:
    """The other end of a request's connection."""
    found: Peer | None = scope.get(PEER)
    return Peer(scope.get("client"), scope.get("server")) if found is None else found


class Guard:
    """ASGI middleware that lets right requests through and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Guard `app` as the settings say."""
        self._app = app
        self._token = settings.token or None
        self._page_key = page_key(settings.token) if settings.token else None
        self._open = not is_loopback(settings.host)
        self._address = _address(settings.host)
        self._names = set(LOOPBACK_NAMES)
        if self._open:
            self._names |= {settings.host.lower(), socket.gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse to."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = (
            self._check_host(headers) or self._check_site(scope, headers) or await self._check_access(scope, headers)
        )
        if refused is None:
            peer = peer_of(scope)
            peer.is_allowed |= is_below_api(scope) and _below_root(scope) != SIGN_IN
            await self._app(scope, receive, with_security_headers(send))
        else:
            more = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
            await error_response(*refused, headers=more)(scope, receive, with_security_headers(send))

    def _check_host(self, headers: Headers) -> Refusal | None:
        # Of two it would depend on who reads them which one counts: together they name nothing.
        found = _HOST.fullmatch(",".join(headers.getlist("host")).lower())
        name = found["name"] if found else ""
        if name in self._names:
            return None
        # A page can point a name of its own here, but not a number. Bound to a network, the machine has addresses that
        # nobody can list.
        address = _address(name)
        if address is not None and (self._open or address == self._address):
            return None
        return Refusal(421, "wrong_host", "this server does not answer for that host name")

    def _check_site(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Pages of another site may follow a link to our page, and nothing more: no answer of the API, no write.

        They could not read the answer, but they could measure how long it takes.
        """
        if not is_below_api(scope) and scope["method"] in _SAFE_METHODS:
            return None
        origin = headers.get("origin")
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if origin is not None:
            foreign |= origin.lower() not in _own_origins(headers)
        return Refusal(403, "forbidden", "another site may not ask this server for anything") if foreign else None

    async def _check_access(self, scope: Scope, headers: Headers) -> Refusal | None:
        if self._token is None or self._page_key is None or not is_below_api(scope):
            return None
        if scope["method"] == "POST" and _below_root(scope) == SIGN_IN:
            return None
        peer = peer_of(scope)
        given = _bearer(headers)
        if peer.is_own or _same(given, self._token):
            return None
        if not _same(given, self._page_key):
            return Refusal(401, "unauthorized", "an access token is needed; `turnlog open` opens the page signed in")
        # Who has the page's key without being the user has taken it from a browser.
        if await peer.is_foreign():
            return Refusal(403, "forbidden", "another user of this machine may not use the page's key")
        return None


def with_security_headers(send: Send) -> Send:
    """Put the security headers on an answer that does not have them."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _bearer(headers: Headers) -> str:
    """What is given as the credentials of RFC 6750."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def is_below_api(scope: Scope) -> bool:
    """Whether a request is for the API, the only place where data is; also where the application is mounted."""
    path = _below_root(scope)
    return path == "/api" or path.startswith("/api/")


def _below_root(scope: Scope) -> str:
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def _own_origins(headers: Headers) -> tuple[str, str]:
    host = headers["host"].lower()
    return f"http://{host}", f"https://{host}"


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The number that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _same(given: str, wanted: str) -> bool:
    """Compare in a time that says nothing about where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())
