"""What OpenAPI says of response bodies: msgspec's schemas of them, under their own names.

Routes return finished bytes and FastAPI does not look inside, so what they hold is declared here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from fastapi import FastAPI

from turnlog.commits.work import SessionWork
from turnlog.model import Ownership
from turnlog.model.base import Value
from turnlog.server import requests, responses
from turnlog.server.errors import ErrorBody, ErrorResponse
from turnlog.store.dollars import Dollars
from turnlog.store.insights import Insights
from turnlog.store.usage_comparison import ComparedPeriod, ComparedRow, CostCause, UsageComparison
from turnlog.store.usage_report import (
    ModelSummary,
    ProjectSummary,
    UsageBlock,
    UsageBudget,
    UsagePart,
    UsageReport,
    UsageRow,
    UsageTotals,
)
from turnlog.store.values import StoredPart, StoreValue, Task

_TEMPLATE = "#/components/schemas/{name}"

_UNKNOWN_FIELDS = next(field.encode_name for field in msgspec.structs.fields(Value) if field.name == "extra")

BODIES: tuple[type[Any], ...] = (
    responses.AgentsResponse,
    responses.ChangePlace,
    responses.DiagnosticPage,
    ErrorResponse,
    responses.EventRecords,
    responses.FileHistoryResponse,
    responses.FileLinesResponse,
    responses.ForgetResponse,
    responses.HandoffResponse,
    responses.HandoffTargetsResponse,
    responses.HookResponse,
    Insights,
    responses.MembershipsResponse,
    responses.MessageResponse,
    requests.MessagesBody,
    Ownership,
    responses.ModelsResponse,
    responses.OutlineResponse,
    responses.ContextResponse,
    responses.ProjectsResponse,
    responses.PromptResponse,
    responses.RecordsResponse,
    responses.ReplayPage,
    responses.RunMessagePage,
    responses.RunPage,
    responses.RunResponse,
    responses.SearchResponse,
    requests.SessionBody,
    responses.SessionUpdate,
    SessionWork,
    responses.SessionItem,
    responses.SessionPage,
    responses.SessionResponse,
    responses.SessionsUpdate,
    responses.SignInLinkResponse,
    responses.SignInResponse,
    responses.StatusResponse,
    Task,
    requests.TaskBody,
    requests.TaskNameBody,
    responses.TasksResponse,
    StoredPart,
    requests.ToolCallBody,
    responses.ToolCallPage,
    responses.ToolsResponse,
    responses.TouchedFiles,
    responses.UIMessagePage,
    UsageComparison,
    UsageReport,
    responses.WindowPage,
)
"""Every body of a request or a response; the types that they hold come with them."""


def responds_with(
    body: type[Any] | None, *, besides: Mapping[str, Any] | None = None, created: bool = False
) -> dict[int | str, dict[str, Any]]:
    """A route's `responses`: this answer, where asked for in one of the forms `besides` it, or an error.

    None: no body, 204. `created`: 201 for what is new.
    """
    if body is None:
        return {204: {"description": "It is done."}, **ERRORS}
    content = {"application/json": {"schema": _reference(body)}, **(besides or {})}
    answer = {"description": _first_line(body), "content": content}
    return {200: answer, **({201: answer} if created else {}), **ERRORS}


def creates(body: type[Any]) -> dict[int | str, dict[str, Any]]:
    """As `responds_with`, of a route that always makes something new."""
    described = responds_with(body)
    return {201: described.pop(200), **described}


def takes(body: type[Any]) -> dict[str, Any]:
    """A route's `openapi_extra`: the body that it takes, which it decodes itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _reference(body)}}}}


def streams(*data: type[Any]) -> dict[int | str, dict[str, Any]]:
    """A route's `responses`: server-sent events, the data of each one of these, or an error."""
    schema = {"anyOf": [_reference(kind) for kind in data]}
    return {
        200: {"description": "Server-sent events, without end.", "content": {"text/event-stream": {"schema": schema}}},
        **ERRORS,
    }


def accepts_with(body: type[Any]) -> dict[int | str, dict[str, Any]]:
    """As `responds_with`, of a route that takes something in and works on it behind its answer."""
    described = responds_with(body)
    return {202: described.pop(200), **described}


def _reference(body: type[Any]) -> dict[str, str]:
    return {"$ref": _TEMPLATE.format(name=body.__name__)}


def _first_line(body: type[Any]) -> str:
    return (body.__doc__ or "").partition("\n")[0]


ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"description": "An error.", "content": {"application/json": {"schema": _reference(ErrorResponse)}}}
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


def describe_responses(app: FastAPI, more: Sequence[type[Any]] = ()) -> None:
    """Add the schemas of bodies, and of more, to what the application says of itself."""
    describe_routes = app.openapi

    def openapi() -> dict[str, Any]:
        described = describe_routes()
        components = described.setdefault("components", {})
        components.setdefault("schemas", {}).update(_schemas((*BODIES, *more)))
        for schema in components["schemas"].values():
            _leave_out_defaults(schema)
        _name_types(described)
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # A server may need none.
        described["security"] = [{"token": []}, {}]
        return described

    app.openapi = openapi


_ALWAYS_WHOLE = (
    ErrorBody,
    UsageComparison,
    ComparedPeriod,
    ComparedRow,
    CostCause,
    UsageReport,
    UsageRow,
    UsagePart,
    UsageBlock,
    UsageBudget,
    UsageTotals,
    ModelSummary,
    ProjectSummary,
)
"""Dataclasses: their JSON has every field, as that of a `StoreValue`."""


def _schemas(bodies: Sequence[type[Any]]) -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(bodies, schema_hook=_schema_of, ref_template=_TEMPLATE)
    found = {name: _open(schema) for name, schema in schemas.items()}
    for kind in _all_below(Value):
        properties = found.get(kind.__name__, {}).get("properties", {})
        properties.update({name: _without_null(field) for name, field in properties.items()})
    for kind in (*_all_below(StoreValue), *_ALWAYS_WHOLE):
        if kind.__name__ in found:
            found[kind.__name__]["required"] = list(found[kind.__name__]["properties"])
    return found


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Dollars:
        return {"type": "number"}
    raise NotImplementedError(kind)


def _all_below(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _all_below(kind)


def _leave_out_defaults(schema: dict[str, Any]) -> None:
    """Generators take a field with a default for one that is always there. These are left out where they have it."""
    for name, field in schema.get("properties", {}).items():
        if name not in schema.get("required", ()):
            field.pop("default", None)


def _name_types(value: Any) -> None:
    """Say of every enumeration that it is of strings, and of every object without fields that it has any.

    Generators make an object of which nothing is said one that is always empty.
    """
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            _name_types(item)
    if not isinstance(value, dict):
        return
    schema = cast("dict[str, Any]", value)
    if isinstance(schema.get("enum"), list):
        schema.setdefault("type", "string")
    elif schema.get("type") == "object" and "properties" not in schema:
        schema.setdefault("additionalProperties", {})
    for inner in schema.values():
        _name_types(inner)


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A field that is left out where it would be null."""
    if field.get("default", field) is not None or "anyOf" not in field:
        return field
    choices = [choice for choice in field["anyOf"] if choice != {"type": "null"}]
    rest = {key: value for key, value in field.items() if key not in ("anyOf", "default")}
    return {**rest, **choices[0]} if len(choices) == 1 else {**rest, "anyOf": choices}


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as JSON has it: unknown fields are beside the known ones, not in a field of their own."""
    schema = dict(schema)
    schema.pop("additionalProperties", None)
    if "description" in schema:
        schema["description"] = inspect.cleandoc(schema["description"])
    if "properties" in schema:
        schema["properties"] = {name: field for name, field in schema["properties"].items() if name != _UNKNOWN_FIELDS}
    return schema
