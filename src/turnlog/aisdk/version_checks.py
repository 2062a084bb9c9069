"""What a message must be for the validator of a version, and a chunk for the client of a release.

Everything here is made from the annotations of the structs in `parts` and `chunks`, once for each version and only
when it is asked for. Messages follow the validator of a major version at its newest release. Chunks follow the client
of an exact release, because a stream meets whatever release the page has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UnsetType

from turnlog.aisdk import checks
from turnlog.aisdk.base import (
    JSON_PROPERTY,
    REFUSED_ELSEWHERE,
    STRIPPED,
    CheckedAs,
    InStates,
    ProviderMetadata,
    Since,
    UIValue,
    Without,
    type_of,
)
from turnlog.aisdk.checks import Check, Field, Fields, UnknownKeys
from turnlog.aisdk.chunks import CHUNK_TYPES, DataChunk, FinishChunk, FinishReason
from turnlog.aisdk.parts import (
    PART_TYPES,
    DataUIPart,
    DynamicToolUIPart,
    ToolPartState,
    ToolUIPart,
    UICitation,
    UIMessage,
)
from turnlog.aisdk.versions import FEATURES, NEWEST, SdkVersion, supports
from turnlog.errors import ShapeError

AnnotationT = TypeVar("AnnotationT")

_BASE = Since("base")
_STATES: tuple[str, ...] = get_args(ToolPartState)


@cache
def message_check(major: int) -> Check:
    """What a message must be for the validator of a major version (R-S1); the check takes unknown keys out."""
    fields = _fields(UIMessage, _validator(major))
    check_fields = checks.object_of(
        {**fields, "parts": fields["parts"]._replace(check=checks.array_of(part_check(major)))}
    )

    def check(value: Any) -> Any:
        message = check_fields(value)
        if not message["parts"] and message["role"] != "assistant":
            raise ShapeError("message must contain at least one part", json_path="$.parts")
        return message

    return check


@cache
def part_check(major: int) -> Check:
    """What a part must be for the validator of a major version (R-S2 to R-S8, R-S14)."""
    scope = _validator(major)
    by_type = {
        kind: _object_check(part, scope) for kind, part in PART_TYPES.items() if scope.knows(Since(part.feature))
    }
    by_type["dynamic-tool"] = _tool_check(DynamicToolUIPart, scope)
    tool = _tool_check(ToolUIPart, scope)
    data = _object_check(DataUIPart, scope)

    def check(value: Any) -> Any:
        name = type_of(value)
        chosen = data if name.startswith("data-") else tool if name.startswith("tool-") else by_type.get(name)
        if chosen is None:
            raise ShapeError(f"unknown part type {name!r:.60}", json_path="$.type")
        return chosen(value)

    return check


@cache
def citation_check() -> Check:
    """What a citation must be; the check takes unknown keys out."""
    return _object_check(UICitation, _validator(max(NEWEST)))


@cache
def chunk_check(release: SdkVersion) -> Check:
    """What a chunk must be for the client of a release.

    Keys that the release does not know are kept unchecked; before "unknown-keys" they are an error.
    """
    scope = _client(release)
    by_type = {kind: _object_check(CHUNK_TYPES[kind], scope) for kind in known_chunks(release)}
    data = _object_check(DataChunk, scope)

    def check(value: Any) -> Any:
        name = type_of(value)
        chosen = data if name.startswith("data-") else by_type.get(name)
        if chosen is None:
            raise ShapeError(f"unknown chunk type {name!r:.60}", json_path="$.type")
        return chosen(value)

    return check


@cache
def known_chunks(release: SdkVersion) -> frozenset[str]:
    """The chunk types of a release, without `data-<name>`."""
    return frozenset(kind for kind, chunk in CHUNK_TYPES.items() if supports(release, chunk.feature))


@cache
def known_finish_reasons(release: SdkVersion) -> frozenset[str]:
    """The finish reasons of a release."""
    return frozenset(reason for reason in get_args(FinishReason) if supports(release, finish_reason_feature(reason)))


def finish_reason_feature(reason: str) -> str:
    """The feature that brought a finish reason."""
    since = _since(_described(FinishChunk)["finish_reason"])
    return since.values.get(reason, since.feature)


@cache
def missing_fields(release: SdkVersion) -> Callable[[type[UIValue], str | None], dict[str, str]]:
    """For a struct and the state of its tool part (else None): attribute -> the feature that the release lacks."""

    @cache
    def missing(struct: type[UIValue], state: str | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, field in _described(struct).items():
            place = _place(field, state)
            since = (place and place.since) or _since(field)
            if not supports(release, since.feature):
                found[name] = since.feature
        return found

    return missing


class _Scope(NamedTuple):
    """Whose rules a check follows."""

    knows: Callable[[Since], bool]
    unknown_keys: UnknownKeys
    state: str | None = None
    """Of the tool part that is checked."""


@cache
def _validator(major: int) -> _Scope:
    def knows(since: Since) -> bool:
        return major >= (since.validated or min(FEATURES[since.feature]))

    return _Scope(knows, "drop")


@cache
def _client(release: SdkVersion) -> _Scope:
    def knows(since: Since) -> bool:
        return supports(release, since.feature) if since.validated is None else release.major >= since.validated

    return _Scope(knows, "keep" if supports(release, "unknown-keys") else "refuse")


class _Described(NamedTuple):
    """A field of a struct, with its annotations apart from its type."""

    name: str
    """In JSON."""
    type: Any
    required: bool
    annotations: tuple[Any, ...]

    def all_of(self, kind: type[AnnotationT]) -> list[AnnotationT]:
        """Its annotations of a kind."""
        return [found for found in self.annotations if isinstance(found, kind)]


@cache
def _described(struct: type[UIValue]) -> dict[str, _Described]:
    """Attribute -> field."""
    found: dict[str, _Described] = {}
    for info in msgspec.structs.fields(struct):
        if info.encode_name == JSON_PROPERTY:
            continue
        kind, annotations = info.type, ()
        if get_origin(kind) is Annotated:
            kind, *annotations = get_args(kind)
        found[info.name] = _Described(info.encode_name, kind, info.required, tuple(annotations))
    return found


def _since(field: _Described) -> Since:
    return next(iter(field.all_of(Since)), _BASE)


def _place(field: _Described, state: str | None) -> InStates | None:
    return next((place for place in field.all_of(InStates) if state in place.states), None)


def _object_check(struct: type[UIValue], scope: _Scope, without: Iterable[str] = ()) -> Check:
    return checks.object_of(_fields(struct, scope, without), scope.unknown_keys)


def _fields(struct: type[UIValue], scope: _Scope, without: Iterable[str] = ()) -> Fields:
    """JSON name -> field, for everything that a version knows of a struct."""
    tag = struct.__struct_config__.tag_field
    fields = {} if tag is None else {tag: Field(tag, checks.text, required=True)}
    for name, described in _described(struct).items():
        field = None if name in without else _field(struct, name, described, scope)
        if field is not None:
            fields[field.name] = field
    return fields


def _field(struct: type[UIValue], name: str, described: _Described, scope: _Scope) -> Field | None:
    """A field as a version knows it; None where it is an unknown key."""
    since = _since_of(struct, name, described)
    if STRIPPED in described.annotations or not scope.knows(since):
        return None
    kind, required = described.type, described.required
    if described.all_of(InStates):
        place = _place(described, scope.state)
        if place is None:
            return Field(described.name, checks.never) if REFUSED_ELSEWHERE in described.annotations else None
        if place.since is not None and not scope.knows(place.since):
            return None
        kind, required = place.type or kind, place.required
    for narrower in described.all_of(CheckedAs):
        kind = narrower.type
    without = [name for found in described.all_of(Without) for name in found.names]
    return Field(described.name, _type_check(kind, scope, since, without), required)


def _since_of(struct: type[UIValue], name: str, described: _Described) -> Since:
    since = _since(described)
    validated = DynamicToolUIPart.validated.get(name) if struct is DynamicToolUIPart else None
    return since if validated is None else since._replace(validated=validated)


def _tool_check(struct: type[ToolUIPart | DynamicToolUIPart], scope: _Scope) -> Check:
    """What a tool part must be in each state (R-S10). A version knows a state if it knows what the state requires."""
    required = [
        (place.states, _since_of(struct, name, described))
        for name, described in _described(struct).items()
        for place in described.all_of(InStates)
        if place.required
    ]
    unknown = {state for states, since in required if not scope.knows(since) for state in states}
    known = [state for state in _STATES if state not in unknown]
    by_state = {state: _object_check(struct, scope._replace(state=state)) for state in known}
    return checks.chosen_by("state", by_state, "unknown state of a tool")


_VALUE_CHECKS: dict[Any, Check] = {
    Any: checks.any_json,
    str: checks.text,
    bool: checks.flag,
    dict[str, Any]: checks.record,
    dict[str, str]: checks.texts,
    ProviderMetadata: checks.metadata,
}

_PROBLEMS = {"sourceType": "unknown kind of source", "type": "no part of a user's message"}
"""Key that tells the structs of a union apart -> the error where it names none of them."""


def _type_check(kind: Any, scope: _Scope, since: Since, without: Iterable[str]) -> Check:
    if kind in _VALUE_CHECKS:
        return _VALUE_CHECKS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return checks.one_of(*(value for value in arguments if _knows_value(scope, since, value)))
    if origin is tuple:
        return checks.array_of(_type_check(arguments[0], scope, since, without))
    if origin in (Union, UnionType):
        options = [option for option in arguments if option is not UnsetType]
        return _type_check(options[0], scope, since, without) if len(options) == 1 else _any_of(options, scope, without)
    return _object_check(kind, scope, without)


def _knows_value(scope: _Scope, since: Since, value: Any) -> bool:
    return value not in since.values or scope.knows(Since(since.values[value]))


def _any_of(options: list[Any], scope: _Scope, without: Iterable[str]) -> Check:
    if set(options) == {int, float}:
        return checks.index
    structs = cast("list[type[UIValue]]", options)
    by_tag = {str(struct.__struct_config__.tag): _object_check(struct, scope, without) for struct in structs}
    key = str(structs[0].__struct_config__.tag_field)
    return checks.chosen_by(key, by_tag, _PROBLEMS[key])
