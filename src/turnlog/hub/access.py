"""Who may ask a hub: host, site, token or browser of every request, how often, and the headers of every answer.

Whoever asks becomes a `Caller`. A browser has a cookie that scripts cannot read; a request that changes something must
come from the hub's own page and carry a header that no form of another site can send. A token needs neither.
"""

from __future__ import annotations

import ipaddress
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog.errors import StoreBusyError, StoreError
from turnlog.hub import scopes
from turnlog.hub.callers import CALLER, Caller
from turnlog.hub.contexts import Contexts
from turnlog.hub.people.registry import People
from turnlog.hub.people.secrets import Kind
from turnlog.hub.rates import RequestRates, WrongSecrets
from turnlog.hub.settings import HubSettings
from turnlog.server.addresses import LOOPBACK_NAMES, is_loopback
from turnlog.server.context import CONTEXT
from turnlog.server.errors import error_response
from turnlog.server.network import PEER, Refusal, is_below_api, with_security_headers

BROWSER_COOKIE: Final = "turnlog_browser"
LINK_COOKIE: Final = "turnlog_link"

CSRF_HEADER: Final = "x-turnlog-csrf"
"""Any value. Another site cannot send it: browsers ask the hub first whether it may, and the hub does not answer."""

SIGN_IN_HEADER: Final = "X-Turnlog-Sign-In"
"""Where a page goes that is answered 401."""

CLIENT: Final = "turnlog.client"
"""Key of an ASGI scope: the address of the client, as far as trusted proxies know it."""

_TOKENS: Final[tuple[Kind, ...]] = ("personal", "machine")

_COOKIES: Final[dict[str, tuple[Kind, ...]]] = {BROWSER_COOKIE: ("browser",), LINK_COOKIE: ("link",)}
"""What each cookie may hold: a token is no browser, and what a browser holds is no token."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_OF_NOBODY: Final = ("/healthz", "/readyz", "/hub/pages/")
"""Answered alike whoever asks: to know who it is takes the database, which may not be there.

A browser that has shown too many wrong secrets is told so on a page, which needs its style.
"""

_BURST_SECONDS: Final = 4.0


class Access:
    """ASGI middleware that knows callers, and refuses what is not allowed."""

    def __init__(
        self, app: ASGIApp, settings: HubSettings, people: People, contexts: Contexts, failures: RequestRates
    ) -> None:
        """Guard `app`; `failures` counts wrong secrets by address."""
        self._app = app
        self._people = people
        self._contexts = contexts
        self._wrong_secrets = WrongSecrets(failures)
        self._rates = RequestRates(settings.requests_per_second, settings.requests_per_second * _BURST_SECONDS)
        self._networks = settings.networks()
        self._proxy = settings.proxy
        public = None if settings.url is None else urlsplit(settings.url).netloc.lower()
        self._hosts = None if public is None and not is_loopback(settings.host) else {public, *LOOPBACK_NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse to."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = with_security_headers(send)
        headers = Headers(scope=scope)
        peer = scope["client"][0] if scope.get("client") else ""
        scope[CLIENT] = self._client(peer, headers)
        refused = self._check_host(headers) or self._check_site(scope, headers)
        more: dict[str, str] = {}
        if refused is None:
            try:
                refused, more = await self._know(scope, headers, peer)
            except StoreBusyError:
                refused, more = Refusal(503, "busy", "the database is busy"), {"Retry-After": "1"}
            except StoreError:
                refused, more = Refusal(503, "unavailable", "the database does not answer"), {"Retry-After": "5"}
        if refused is not None:
            await error_response(*refused, headers=more)(scope, receive, send)
            return
        caller: Caller | None = scope.get(CALLER)
        if caller is not None and "read" not in caller.scopes and is_below_api(scope):
            send = _without_content(send)
        await self._app(scope, receive, send)

    def _client(self, peer: str, headers: Headers) -> str:
        forwarded = headers.get("x-forwarded-for", "")
        return forwarded.rpartition(",")[2].strip() if forwarded and self._is_proxy(peer) else peer

    def _is_proxy(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def _check_host(self, headers: Headers) -> Refusal | None:
        host = ",".join(headers.getlist("host")).lower()
        if self._hosts is None or host in self._hosts or host.rpartition(":")[0] in self._hosts:
            return None
        return Refusal(421, "wrong_host", "this hub does not answer for that host name")

    def _check_site(self, scope: Scope, headers: Headers) -> Refusal | None:
        if scope["method"] in _SAFE and not _is_data(scope):
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return Refusal(403, "forbidden", "another site may not ask this hub for anything")
        origin = headers.get("origin")
        if origin is not None and _host_of(origin) != headers.get("host", "").lower():
            return Refusal(403, "forbidden", "another site may not ask this hub for anything")
        return None

    async def _know(self, scope: Scope, headers: Headers, peer: str) -> tuple[Refusal | None, dict[str, str]]:
        """Put the caller into the scope; why there is none, where one is needed."""
        if scope["path"].startswith(_OF_NOBODY):
            wait = self._rates.take(scope[CLIENT])
            return _too_many(wait) if wait else (None, {})
        caller, is_browser = await run_in_threadpool(self._caller, scope, headers, peer)
        key = scope[CLIENT] if caller is None else (caller.machine or caller.user)
        if wait := self._rates.take(key):
            return _too_many(wait)
        if caller is None:
            refused = _refuse_nobody(scope, has_token=bool(bearer(headers)))
            shown = _shown(scope, headers)
            # What anybody is answered says nothing of what was shown: whoever has an old cookie can sign in anew.
            if refused[0] and shown and (wait := self._wrong_secrets.take(scope[CLIENT], shown)):
                return _too_many(wait)
            return refused
        if is_browser and scope["method"] not in _SAFE and CSRF_HEADER not in headers:
            return Refusal(403, "forbidden", f"a browser must send the header {CSRF_HEADER}"), {}
        if _is_data(scope) and (refused := _refuse(scope, caller)):
            return refused, {}
        if is_below_api(scope):
            scope[CONTEXT] = self._contexts.of(caller)
        scope[CALLER] = caller
        if PEER in scope:
            # A connection of somebody who is known is not given up for new ones.
            scope[PEER].is_allowed = True
        return None, {}

    def _caller(self, scope: Scope, headers: Headers, peer: str) -> tuple[Caller | None, bool]:
        """The caller, and whether a browser shows who it is without being asked."""
        token = bearer(headers)
        if token:
            return self._people.secrets.caller(token, _TOKENS), False
        cookies = HTTPConnection(scope).cookies
        for name, kinds in _COOKIES.items():
            if name in cookies:
                caller = self._people.secrets.caller(cookies[name], kinds)
                if caller is not None:
                    return caller, True
        if self._proxy.header is not None and self._is_proxy(peer):
            named = headers.get(self._proxy.header, "").strip()
            if named:
                return self._people.known_by_proxy(named, self._proxy.joins), True
        return None, False


def _host_of(origin: str) -> str | None:
    """The host of an origin, with its port; None if it is no address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def bearer(headers: Headers) -> str:
    """The token of the credentials; empty if there is none."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _shown(scope: Scope, headers: Headers) -> str:
    """What was shown that proves nothing; empty if there is nothing."""
    cookies = HTTPConnection(scope).cookies
    return " ".join(filter(None, (bearer(headers), *(cookies.get(name) for name in _COOKIES))))


def _is_data(scope: Scope) -> bool:
    return is_below_api(scope) or scope["path"].startswith("/hub/")


def _refuse_nobody(scope: Scope, *, has_token: bool) -> tuple[Refusal | None, dict[str, str]]:
    """Why nobody may ask this; None for what anybody may."""
    if not _is_data(scope) or scopes.need_of(_method(scope), scope["path"]) == scopes.ANYBODY:
        return None, {}
    cookies = HTTPConnection(scope).cookies
    # Whoever came by a link cannot sign in: the page of links says that it has ended.
    page = "/shared" if LINK_COOKIE in cookies and BROWSER_COOKIE not in cookies else "/sign-in"
    where = {SIGN_IN_HEADER: page} if is_below_api(scope) else {}
    # Nothing is said of whether there ever was such a token.
    reason = "the token is wrong, has ended or was revoked" if has_token else "sign in, or send a token"
    return Refusal(401, "unauthorized", reason), {"WWW-Authenticate": "Bearer", **where}


def _refuse(scope: Scope, caller: Caller) -> Refusal | None:
    """Why a caller may not ask this, whatever their role."""
    need = scopes.need_of(_method(scope), scope["path"])
    if need == "nothing":
        return Refusal(404, "not_found", "there is no such address")
    if isinstance(need, str):
        return None
    roles = scopes.roles_for(_method(scope), scope["path"], need)
    if caller.role in roles and scopes.has(caller.powers, need):
        return None
    if need == scopes.BROWSER:
        return Refusal(403, "forbidden", "only a person who is signed in with a browser may do this")
    if caller.is_link:
        return Refusal(403, "forbidden", "this link shows one session, and nothing else")
    if caller.role not in roles:
        *first, last = roles
        wanted = f"{', '.join(first)} or {last}" if first else last
        return Refusal(403, "forbidden", f"this takes the role {wanted}; yours is {caller.role}")
    wanted = " or ".join(" and ".join(sorted(each)) for each in need if "browser" not in each)
    return Refusal(403, "forbidden", f"this takes the scope {wanted}")


def _without_content(send: Send) -> Send:
    """Answer 204 where something was done: for who may change a session, but not read it."""
    is_done = False

    async def send_rest(message: Message) -> None:
        nonlocal is_done
        if message["type"] == "http.response.start" and 200 <= message["status"] < 300:
            is_done = True
            headers = [each for each in message["headers"] if not each[0].lower().startswith((b"content-", b"etag"))]
            await send({**message, "status": 204, "headers": headers})
        elif not is_done or message["type"] != "http.response.body":
            await send(message)
        elif not message.get("more_body"):
            await send({"type": "http.response.body", "body": b""})

    return send_rest


def _method(scope: Scope) -> str:
    return "GET" if scope["method"] == "HEAD" else scope["method"]


def _too_many(seconds: float) -> tuple[Refusal, dict[str, str]]:
    wait = ceil(seconds)
    return Refusal(429, "too_many", f"too many requests: wait {wait} seconds"), {"Retry-After": str(wait)}
