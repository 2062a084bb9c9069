"""Errors as a page, for a person who opens an address in a browser; programs, and the pages themselves, get JSON."""

from __future__ import annotations

import html
import json
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
        if (
            scope["type"] == "http"
            and scope["method"] == "GET"
            and "text/html" in Headers(scope=scope).get("accept", "")
        ):
            send = _as_page(scope, send)
        await self._app(scope, receive, send)


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
        link = f'<a class="button main" href="/sign-in?to={quote(scope["path"])}">Sign in</a>'
    sentence = reason[:1].upper() + reason[1:] if reason.split(" ")[0].isalpha() else reason
    return _PAGE.format(title=_TITLES.get(status, "This did not work"), message=html.escape(sentence), link=link)
