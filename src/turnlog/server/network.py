"""Who may ask: host, origin and token of every request, and the headers of every answer.

A server on loopback is open to every web page that the same browser shows. What protects it is checked here and
nowhere else, before any route runs: the Host header (a page can point a name of its own at 127.0.0.1, but cannot
change the name the browser sends), the Origin of writes, and off loopback a token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog.server import Settings
from turnlog.server.errors import error_response

TOKEN_BYTES = 32

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(:\d{1,5})?", re.ASCII)

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

COOKIE = "turnlog"

FROM_OWN_SOCKET = "turnlog.from_own_socket"
"""Key of an ASGI scope: whether the request came through the socket that only the user can open (`connections`).

A scope is made by the server: no client can put this into it.
"""

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


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token(settings: Settings) -> None:
    """Raise ValueError for an address off loopback without a token, and for prompts there or without one."""
    if not settings.token and not is_loopback(settings.host):
        raise ValueError(f"a server on {settings.host} needs a token")
    if settings.prompts and (not settings.token or not is_loopback(settings.host)):
        raise ValueError("a server that takes prompts is on loopback, and needs a token")


def new_token() -> str:
    """256 random bits, as they go into an address."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Guard:
    """ASGI middleware that lets right requests through and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Guard `app` as the settings say."""
        self._app = app
        self._token = settings.token or None
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
        refused = self._check_host(headers) or self._check_site(scope, headers)
        if refused is not None:
            await error_response(*refused)(scope, receive, _with_headers(send))
        elif self._token is not None and not scope.get(FROM_OWN_SOCKET) and not self._has_token(self._token, headers):
            await self._ask_for_token(self._token, scope)(scope, receive, _with_headers(send))
        else:
            await self._app(scope, receive, _with_headers(send))

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

    def _has_token(self, token: str, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), token):
            return True
        return _same(_cookie(headers), cookie_value(token))

    def _ask_for_token(self, token: str, scope: Scope) -> Response:
        """Turn the token of an address into a cookie, or say what is missing."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and scope["method"] == "GET" and _same(given, token):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            # One slash at its start: two would lead to another host.
            path = "/" + scope["raw_path"].decode("ascii", "replace").lstrip("/")
            response = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
            response.set_cookie(COOKIE, cookie_value(token), httponly=True, samesite="strict", max_age=365 * 86400)
            return response
        message = "a token is needed: open the address that `turnlog serve` printed"
        if scope["path"].startswith("/api/"):
            return error_response(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
        return PlainTextResponse(f"{message}\n", 401, headers={"WWW-Authenticate": "Bearer"})


def cookie_value(token: str) -> str:
    """What the browser keeps: proves that it knew the token, and is not the token."""
    return hmac.new(token.encode(), b"turnlog cookie", hashlib.sha256).hexdigest()


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def is_below_api(scope: Scope) -> bool:
    """Whether a request is for the API, the only place where data is; also where the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    below = path.removeprefix(root) if path.startswith(f"{root}/") else path
    return below == "/api" or below.startswith("/api/")


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
    """Compare in a time that tells nothing about where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())
