"""Errors as JSON: one shape (`{"error": {type, message, detail}}`), one table from exceptions to it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from turnlog.arguments import plain_reason
from turnlog.errors import (
    ConflictError,
    NotFoundError,
    SettingsError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong with one parameter."""

    field: str
    reason: str


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong: a word for programs, a sentence for people, and for bad parameters which."""

    type: str
    message: str
    detail: list[FieldError] | None = None


class ErrorResponse(msgspec.Struct, frozen=True):
    """Every answer that is not a success."""

    error: ErrorBody


class InvalidParameterError(Exception):
    """A parameter that only the store could judge."""

    def __init__(self, field: str, reason: str) -> None:
        """Keep the name of the parameter and what is wrong with it."""
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidBodyError(Exception):
    """A body that is no JSON."""


class _Kind(NamedTuple):
    status: int
    type: str
    retry_after: int | None = None
    """Seconds."""


_STORE_ERRORS: dict[type[Exception], _Kind] = {
    NotFoundError: _Kind(404, "not_found"),
    ConflictError: _Kind(409, "conflict"),
    StoreBusyError: _Kind(503, "busy", 1),
    StoreUnreachableError: _Kind(503, "unavailable", 5),
    StoreFullError: _Kind(507, "no_space", 60),
    StoreError: _Kind(500, "store"),
    SettingsError: _Kind(500, "settings"),
}

_HTTP_ERRORS = {
    400: "invalid_json",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many",
    503: "busy",
}


def error_response(
    status: int,
    type: str,
    message: str,
    detail: list[FieldError] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as every client gets it."""
    body = msgspec.json.encode(ErrorResponse(ErrorBody(type, message, detail)))
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


@contextmanager
def judging(field: str, kind: type[ValueError] = ValueError) -> Generator[None]:
    """Blame a parameter for the error of this kind that the store raises about it."""
    try:
        yield
    except kind as error:
        raise InvalidParameterError(field, str(error)) from error


def handle_errors(app: FastAPI) -> None:
    """Give every exception its JSON."""
    for kind in _STORE_ERRORS:
        app.add_exception_handler(kind, _store_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(InvalidParameterError, _invalid_parameter)
    app.add_exception_handler(InvalidBodyError, _invalid_body)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _disconnected)
    app.add_exception_handler(Exception, _internal_error)


async def _store_error(request: Request, error: Exception) -> Response:
    kind = next(kind for known, kind in _STORE_ERRORS.items() if isinstance(error, known))
    headers = {} if kind.retry_after is None else {"Retry-After": str(kind.retry_after)}
    return error_response(kind.status, kind.type, str(error), headers=headers)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(problem["type"] == "json_invalid" for problem in found):
        return error_response(400, "invalid_json", "the body is not JSON")
    fields = [FieldError(_field_name(each["loc"]), _reason(each)) for each in found]
    return _refused(fields)


async def _invalid_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidParameterError)
    return _refused([FieldError(error.field, error.reason)])


def _refused(fields: list[FieldError]) -> Response:
    reasons = {field.field: field.reason for field in reversed(fields)}
    problems = [f"{name}: {reason}" for name, reason in [*reversed(reasons.items())][:_MOST_REPORTED]]
    return error_response(422, "invalid_parameter", f"cannot be used: {'; '.join(problems)}", fields)


_MOST_REPORTED = 5
"""How many fields the sentence for people names; the detail has all."""


async def _invalid_body(request: Request, error: Exception) -> Response:
    return error_response(400, "invalid_json", f"the body is not JSON: {error}")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    type = _HTTP_ERRORS.get(error.status_code, "internal")
    allowed = (error.headers or {}).get("Allow")
    methods = ", ".join(sorted((allowed or "").split(", ")))
    sentence = f"this address takes {methods}, not {request.method}" if allowed else str(error.detail)
    return error_response(error.status_code, type, sentence, headers=error.headers)


async def _disconnected(request: Request, error: Exception) -> Response:
    """The client has gone in the middle of its body: nobody reads this answer, but it is no failure for the log."""
    return error_response(400, "invalid_json", "the body was not sent whole")


async def _internal_error(request: Request, error: Exception) -> Response:
    """What nobody foresaw: the server's log has it, the client learns nothing of its inside."""
    return error_response(500, "internal", "the server failed to answer; its log has the reason")


def _field_name(location: tuple[int | str, ...]) -> str:
    """`limit` of `("query", "limit")`; `tags.0` of `("body", "tags", 0)`; `body` when it is no JSON at all."""
    names = [str(step) for step in location[1:]]
    return ".".join(names) if names and isinstance(location[1], str) else str(location[0])


def _reason(problem: dict[str, Any]) -> str:
    if problem["type"] == "string_pattern_mismatch":
        return _FORMS.get(_field_name(problem["loc"]), str(problem["msg"]))
    return plain_reason(problem["type"], problem["msg"], problem.get("ctx", {}))


_FORMS = {"hour": "expected a weekday from 1 (Monday) to 7 and an hour, as 6-02"}
"""Parameter with a form of its own -> that form, which a regular expression would say to few."""
