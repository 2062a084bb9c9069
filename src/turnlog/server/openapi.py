"""What OpenAPI says of answers: msgspec's schemas of them, under their own names.

Routes return finished bytes and FastAPI does not look inside, so it is told here what they hold.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from fastapi import FastAPI

from turnlog.model.base import Value
from turnlog.server.answers.base import Answer
from turnlog.server.answers.calls import ToolCallPage, ToolsAnswer
from turnlog.server.answers.files import FileAnswer, TouchedFiles
from turnlog.server.answers.inventory import AgentsAnswer, DiagnosticPage, ModelsAnswer, ProjectsAnswer
from turnlog.server.answers.live import ChangePlace, HookAnswer, SessionChange, SessionsChange
from turnlog.server.answers.messages import (
    EventRecords,
    MessageAnswer,
    RawRecords,
    ReplayPage,
    UIMessagePage,
    WindowPage,
)
from turnlog.server.answers.runs import PromptAnswer, Run, RunPage
from turnlog.server.answers.search import SearchAnswer
from turnlog.server.answers.sessions import OutlineAnswer, SessionAnswer, SessionItem, SessionPage
from turnlog.server.answers.status import StatusAnswer
from turnlog.server.answers.usage import UsageAnswer
from turnlog.server.errors import ErrorAnswer

_TEMPLATE = "#/components/schemas/{name}"

_UNKNOWN_FIELDS = next(field.encode_name for field in msgspec.structs.fields(Value) if field.name == "extra")

ANSWERS: tuple[type[msgspec.Struct], ...] = (
    AgentsAnswer,
    ChangePlace,
    DiagnosticPage,
    ErrorAnswer,
    EventRecords,
    HookAnswer,
    FileAnswer,
    MessageAnswer,
    ModelsAnswer,
    OutlineAnswer,
    ProjectsAnswer,
    PromptAnswer,
    RawRecords,
    Run,
    RunPage,
    ReplayPage,
    SearchAnswer,
    SessionAnswer,
    SessionChange,
    SessionItem,
    SessionPage,
    SessionsChange,
    StatusAnswer,
    ToolCallPage,
    ToolsAnswer,
    TouchedFiles,
    UIMessagePage,
    UsageAnswer,
    WindowPage,
)
"""Everything that a route may answer; what they hold comes with them."""


def answers_with(
    answer: type[msgspec.Struct], *, besides: Mapping[str, Any] | None = None
) -> dict[int | str, dict[str, Any]]:
    """A route's `responses`: this answer, where asked for in one of the forms `besides` it, or an error."""
    content = {"application/json": {"schema": _reference(answer)}, **(besides or {})}
    return {
        200: {"description": _first_line(answer), "content": content},
        **ERRORS,
    }


def streams(*data: type[msgspec.Struct]) -> dict[int | str, dict[str, Any]]:
    """A route's `responses`: server-sent events, the data of each one of these, or an error."""
    schema = {"anyOf": [_reference(kind) for kind in data]}
    return {
        200: {"description": "Server-sent events, without end.", "content": {"text/event-stream": {"schema": schema}}},
        **ERRORS,
    }


def taken_with(answer: type[msgspec.Struct]) -> dict[int | str, dict[str, Any]]:
    """As `answers_with`, of a route that takes something in and works on it behind its answer."""
    described = answers_with(answer)
    return {202: described.pop(200), **described}


def _reference(answer: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": _TEMPLATE.format(name=answer.__name__)}


def _first_line(answer: type[msgspec.Struct]) -> str:
    return (answer.__doc__ or "").partition("\n")[0]


ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"description": "An error.", "content": {"application/json": {"schema": _reference(ErrorAnswer)}}}
}

CHUNKS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: a UI message stream of AI SDK.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "The last turn has ended."},
    **ERRORS,
}

BYTES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes; pictures under their own type.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
    **ERRORS,
}


def describe_answers(app: FastAPI) -> None:
    """Add the answers' schemas to what the application says of itself."""
    describe_routes = app.openapi

    def openapi() -> dict[str, Any]:
        described = describe_routes()
        described.setdefault("components", {}).setdefault("schemas", {}).update(_schemas())
        return described

    app.openapi = openapi


def _schemas() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(ANSWERS, ref_template=_TEMPLATE)
    found = {name: _open(schema) for name, schema in schemas.items()}
    for answer in _all_below(Answer):
        if answer.__name__ in found and not answer.__struct_config__.omit_defaults:
            found[answer.__name__]["required"] = list(found[answer.__name__]["properties"])
    return found


def _all_below(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _all_below(kind)


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as JSON has it: unknown fields stand beside the known ones, not in a field of their own."""
    schema = dict(schema)
    schema.pop("additionalProperties", None)
    if "description" in schema:
        schema["description"] = inspect.cleandoc(schema["description"])
    if "properties" in schema:
        schema["properties"] = {name: field for name, field in schema["properties"].items() if name != _UNKNOWN_FIELDS}
    return schema
