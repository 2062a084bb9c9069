"""Errors as a page, for a person who opens an address in a browser; programs, and the pages themselves, get JSON."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TITLES: Final = {
    401: "Sign in to see this",
    403: "This is not allowed",
    404: "There is nothing here",
    429: "Too many requests",
    503: "Not just now",
}

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · turnlog</title>
<link rel="stylesheet" href="/hub/pages/page.css">
</head>
<body>
<main class="narrow"><div class="card"><h1>{title}</h1><p role="alert">{message}</p>{link}</div></main>
</body>
</html>
"""


class ErrorPages:
    """ASGI middleware that shows an error of a request for a page as one."""

    def __init__(self, app: ASGIApp) -> None:
        """Show the errors of `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] == "http" and scope["method"] == "GET" and wants_page(Headers(scope=scope).getlist("accept")):
            send = _as_page(scope, send)
        await self._app(scope, receive, send)


def wants_page(accept: Sequence[str]) -> bool:
    """Whether whoever sends these headers `Accept` would rather have HTML than JSON.

    HTML has to be named. Where both are wanted as much, it is the one that is named first.
    """
    items = ",".join(accept).lower().split(",")[:_MOST_KINDS]
    wanted = {kind: quality for kind, quality in map(_quality, items)}
    html_quality = wanted.get("text/html", 0.0)
    json_quality = next((wanted[kind] for kind in _JSON if kind in wanted), 0.0)
    if not html_quality or html_quality != json_quality:
        return html_quality > json_quality
    named = [kind for kind in wanted if kind in ("text/html", "application/json")]
    return named[0] == "text/html"


_MOST_KINDS: Final = 32
"""Kinds of content in `Accept` that are looked at. Browsers name fewer than ten."""

_JSON: Final = ("application/json", "application/*", "*/*")
"""What may name JSON, the most exact first."""


def _quality(item: str) -> tuple[str, float]:
    """A kind of content, and how much it is wanted: from 0, for not at all, to 1."""
    kind, *parameters = [part.strip() for part in item.split(";")]
    given = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    return kind, float(given) if _NUMBER.fullmatch(given) else 0.0


_NUMBER: Final = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)


def _as_page(scope: Scope, send: Send) -> Send:
    start: Message | None = None
    """Of an error, until all of it is there."""
    body = b""

    async def send_page(message: Message) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start" and _is_error(message):
            start = message
        elif start is None or message["type"] != "http.response.body":
            await send(message)
        else:
            body += message.get("body", b"")
            if not message.get("more_body"):
                page = _page(start["status"], _reason(body), scope).encode()
                headers = MutableHeaders(scope=start)
                headers["Content-Type"], headers["Content-Length"] = "text/html; charset=utf-8", str(len(page))
                headers.add_vary_header("Accept")
                await send(start)
                await send({"type": "http.response.body", "body": page})

    return send_page


def _is_error(start: Message) -> bool:
    kind = Headers(scope=start).get("content-type", "")
    return (
        start["status"] >= 400
        and kind.startswith("application/json")
        and "content-encoding" not in Headers(scope=start)
    )


def _reason(body: bytes) -> str:
    try:
        error: Any = json.loads(body)["error"]
        return str(error["message"])
    except (ValueError, KeyError, TypeError):
        return "the hub gives no reason"


def _page(status: int, reason: str, scope: Scope) -> str:
    link = '<a href="/">Sessions</a>'
    if status == 401:
        link = f'<a class="button main" href="/sign-in?to={quote(_address(scope))}">Sign in</a>'
    sentence = reason[:1].upper() + reason[1:] if reason.split(" ")[0].isalpha() else reason
    return _PAGE.format(title=_TITLES.get(status, "This did not work"), message=html.escape(sentence), link=link)


def _address(scope: Scope) -> str:
    """What was asked for, without the host."""
    path = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else quote(scope["path"])
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path
