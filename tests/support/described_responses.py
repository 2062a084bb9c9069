"""Checks every JSON response of a test client against what the server says of itself in OpenAPI.

The description leaves objects open, so that a client survives new fields. Here they are closed: a field that is sent
and not described is an error too.
"""

from __future__ import annotations

import json
import re
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx2
import jsonschema_rs
from starlette.testclient import TestClient

from turnlog.server import create_app

_JSON = "application/json"
_BASE = "urn:openapi"


class DescribedClient(TestClient):
    """A client for which a response that the description does not allow is an AssertionError."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The response; one that is streamed is not looked at."""
        response = super().send(request, **options)
        is_json = response.headers.get("content-type", "").partition(";")[0] == _JSON
        if is_json and request.method != "HEAD" and not options.get("stream"):
            check_response(request.method, request.url.path, response.status_code, response.content)
        return response


@cache
def description() -> dict[str, Any]:
    """What `/openapi.json` answers."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Path(folder) / "turnlog.db")
        try:
            return app.openapi()
        finally:
            app.state.context.close()


def check_response(method: str, path: str, status: int, body: bytes) -> None:
    """Raise AssertionError when the body is not what the description says of this request and status.

    An address that is not described (the API's own description, one that does not exist) may answer anything, and so
    may one whose answers are bytes of any type.
    """
    validator = _validator(method.lower(), address_of(path), str(status))
    if validator is None:
        return
    problems = [
        f"{'.'.join(map(str, error.instance_path))}: {error.message}"
        for error in validator.iter_errors(json.loads(body))
    ]
    assert not problems, f"{method} {path} {status} is not as described: {problems[:5]}"


class _Address(NamedTuple):
    template: str
    pattern: re.Pattern[str]


@cache
def _addresses() -> list[_Address]:
    """Every described address; those with more fixed text first, as the server looks for them."""
    found = sorted(description()["paths"], key=lambda path: (-len(re.sub(r"\{.*?\}", "", path)), path))
    return [_Address(each, re.compile(re.sub(r"\\\{(.*?)\\\}", _placeholder, re.escape(each)))) for each in found]


def _placeholder(name: re.Match[str]) -> str:
    return ".+" if name[1] in ("message_id", "part_id") else "[^/]+"


def address_of(path: str) -> str | None:
    """The described address of a path; None for one that is not described."""
    return next((address.template for address in _addresses() if address.pattern.fullmatch(path)), None)


@cache
def _validator(method: str, template: str | None, status: str) -> jsonschema_rs.Draft202012Validator | None:
    operation = description()["paths"].get(template, {}).get(method)
    if operation is None:
        return None
    content = operation["responses"].get(status, operation["responses"]["default"])["content"]
    if _JSON not in content:
        return None
    closed = {"$id": _BASE, "components": _closed(), "allOf": [content[_JSON]["schema"]]}
    return jsonschema_rs.Draft202012Validator(closed, validate_formats=True)


@cache
def _closed() -> dict[str, Any]:
    components = deepcopy(description()["components"])
    for schema in cast("dict[str, dict[str, Any]]", components["schemas"]).values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return components
