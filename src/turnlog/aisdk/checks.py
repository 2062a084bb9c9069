"""Checks of messages (the validator of a version) and of chunks (the client of a release).

Every check is made from the annotations of the structs in `parts` and `chunks`, once per version and on first use.
Messages follow the validator of a major version at its newest release. Chunks follow the client of an exact release,
because any release may read the stream.

A check takes a plain JSON value and returns it without unknown keys, or raises `ShapeError`; it never changes its
argument. The functions at the end mirror the zod schemas of ai 5, 6 and 7: what each accepts and what it strips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UnsetType

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

Check: TypeAlias = Callable[[Any], Any]


UnknownKeys: TypeAlias = Literal["drop", "keep", "refuse"]
"""What happens to undeclared keys: zod's `object`, `looseObject`, `strictObject`."""


class Field(NamedTuple):
    """One key of a shape."""

    name: str
    check: Check
    required: bool = False


Fields: TypeAlias = Mapping[str, Field]


AnnotationT = TypeVar("AnnotationT")


_BASE = Since("base")


_STATES: tuple[str, ...] = get_args(ToolPartState)


@cache
def message_check(major: int) -> Check:
    """The check of a message for a major version (R-S1). It removes unknown keys."""
    fields = _fields(UIMessage, _validator(major))
    check_fields = object_of({**fields, "parts": fields["parts"]._replace(check=array_of(part_check(major)))})

    def check(value: Any) -> Any:
        message = check_fields(value)
        if not message["parts"] and message["role"] != "assistant":
            raise ShapeError("message must contain at least one part", json_path="$.parts")
        return message

    return check


@cache
def part_check(major: int) -> Check:
    """The check of a part for a major version (R-S2 to R-S8, R-S14)."""
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
    """The check of a citation. It removes unknown keys."""
    return _object_check(UICitation, _validator(max(NEWEST)))


@cache
def chunk_check(release: SdkVersion) -> Check:
    """The check of a chunk for the client of a release.

    Keys that the release does not know are kept unchecked; before the feature "unknown-keys" they are an error.
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
    """The chunk types that a release knows, without `data-<name>`."""
    return frozenset(kind for kind, chunk in CHUNK_TYPES.items() if supports(release, chunk.feature))


@cache
def known_finish_reasons(release: SdkVersion) -> frozenset[str]:
    """The finish reasons that a release knows."""
    return frozenset(reason for reason in get_args(FinishReason) if supports(release, finish_reason_feature(reason)))


def finish_reason_feature(reason: str) -> str:
    """The feature that introduced a finish reason."""
    since = _since(_described(FinishChunk)["finish_reason"])
    return since.values.get(reason, since.feature)


@cache
def missing_fields(release: SdkVersion) -> Callable[[type[UIValue], str | None], dict[str, str]]:
    """Attributes that a release lacks, with the feature, for a struct and the state of its tool part (or None)."""

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
    """The version and release whose rules a check follows."""

    knows: Callable[[Since], bool]
    unknown_keys: UnknownKeys
    state: str | None = None
    """The state of the tool part that is checked."""


@cache
def _validator(major: int) -> _Scope:
    # A server validates with its newest installed release, so the first patch with a feature does not matter.
    def knows(since: Since) -> bool:
        return major >= (since.validated or min(FEATURES[since.feature]))

    return _Scope(knows, "drop")


@cache
def _client(release: SdkVersion) -> _Scope:
    def knows(since: Since) -> bool:
        return supports(release, since.feature) if since.validated is None else release.major >= since.validated

    # Until July 2026 chunks were zod's strictObject: a single unknown key ended the stream.
    return _Scope(knows, "keep" if supports(release, "unknown-keys") else "refuse")


class _Described(NamedTuple):
    """A field of a struct, with its annotations separated from its type."""

    name: str
    """Its name in JSON."""
    type: Any
    required: bool
    annotations: tuple[Any, ...]

    def all_of(self, kind: type[AnnotationT]) -> list[AnnotationT]:
        """Its annotations of one kind."""
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
    return object_of(_fields(struct, scope, without), scope.unknown_keys)


def _fields(struct: type[UIValue], scope: _Scope, without: Iterable[str] = ()) -> Fields:
    """JSON name -> field, for the fields of a struct that a version knows."""
    # msgspec keeps the type in the struct's tag; zod checks it as a key like any other.
    tag = struct.__struct_config__.tag_field
    fields = {} if tag is None else {tag: Field(tag, check_text, required=True)}
    for name, described in _described(struct).items():
        field = None if name in without else _field(struct, name, described, scope)
        if field is not None:
            fields[field.name] = field
    return fields


def _field(struct: type[UIValue], name: str, described: _Described, scope: _Scope) -> Field | None:
    """A field in a version; None if it is an unknown key there."""
    since = _since_of(struct, name, described)
    if STRIPPED in described.annotations or not scope.knows(since):
        return None
    kind, required = described.type, described.required
    if described.all_of(InStates):
        place = _place(described, scope.state)
        if place is None:
            return Field(described.name, check_absent) if REFUSED_ELSEWHERE in described.annotations else None
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
    """The checks of a tool part by state (R-S10). A version knows a state if it knows the fields that it requires."""
    required = [
        (place.states, _since_of(struct, name, described))
        for name, described in _described(struct).items()
        for place in described.all_of(InStates)
        if place.required
    ]
    unknown = {state for states, since in required if not scope.knows(since) for state in states}
    known = [state for state in _STATES if state not in unknown]
    by_state = {state: _object_check(struct, scope._replace(state=state)) for state in known}
    return chosen_by("state", by_state, "unknown state of a tool")


def _type_check(kind: Any, scope: _Scope, since: Since, without: Iterable[str]) -> Check:
    if kind in _VALUE_CHECKS:
        return _VALUE_CHECKS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return one_of(*(value for value in arguments if _knows_value(scope, since, value)))
    if origin is tuple:
        return array_of(_type_check(arguments[0], scope, since, without))
    if origin in (Union, UnionType):
        options = [option for option in arguments if option is not UnsetType]
        return _type_check(options[0], scope, since, without) if len(options) == 1 else _any_of(options, scope, without)
    return _object_check(kind, scope, without)


def _knows_value(scope: _Scope, since: Since, value: Any) -> bool:
    return value not in since.values or scope.knows(Since(since.values[value]))


def _any_of(options: list[Any], scope: _Scope, without: Iterable[str]) -> Check:
    # JavaScript has one type of number, so 3.0 is an integer: this applies to the indexes of citations.
    if set(options) == {int, float}:
        return check_index
    structs = cast("list[type[UIValue]]", options)
    by_tag = {str(struct.__struct_config__.tag): _object_check(struct, scope, without) for struct in structs}
    key = str(structs[0].__struct_config__.tag_field)
    return chosen_by(key, by_tag, _PROBLEMS[key])


_LARGEST_SAFE_INTEGER = 2**53 - 1


def check_any(value: Any) -> Any:
    """Accept any JSON, including null."""
    return value


def check_absent(value: Any) -> Any:
    """A key that must be absent."""
    raise ShapeError("this key may not stand here")


def check_text(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ShapeError(f"expected a string, got {_kind(value)}")
    return value


def check_flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ShapeError(f"expected true or false, got {_kind(value)}")
    return value


def check_index(value: Any) -> int | float:
    """Accept an integer from 0 to JavaScript's maximum."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ShapeError(f"expected a whole number, got {_kind(value)}")
    if not 0 <= value <= _LARGEST_SAFE_INTEGER:
        raise ShapeError("number out of range")
    return value


def one_of(*options: Any) -> Check:
    """One of these strings or booleans."""

    def check(value: Any) -> Any:
        # `1 == True` in Python, but not here.
        if not isinstance(value, str | bool) or value not in options:
            raise ShapeError(f"expected one of {', '.join(map(repr, options))}, got {value!r:.60}")
        return value

    return check


def check_record(value: Any) -> dict[str, Any]:
    """Accept an object of any JSON, without `__proto__` at any depth."""
    return json_value(_object(value))


def check_provider_metadata(value: Any) -> dict[str, Any]:
    """Provider metadata: an object of objects."""
    return {key: check_at(key, check_record, item) for key, item in _object(value).items() if key != "__proto__"}


def check_texts(value: Any) -> dict[str, str]:
    """An object of strings."""
    return {key: check_at(key, check_text, item) for key, item in _object(value).items() if key != "__proto__"}


def json_value(value: Any) -> Any:
    """Accept any JSON with finite numbers, at any depth."""
    pending = [value]
    holds_proto = False
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            holds_proto = holds_proto or "__proto__" in fields
            pending.extend(fields.values())
        elif isinstance(item, list | tuple):
            pending.extend(cast("list[Any]", item))
        elif isinstance(item, float) and not math.isfinite(item):
            raise ShapeError("expected a finite number")
    return _without_proto(value) if holds_proto else value


def _without_proto(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _without_proto(item) for key, item in fields.items() if key != "__proto__"}
    return [_without_proto(item) for item in cast("list[Any]", value)] if isinstance(value, list | tuple) else value


def array_of(check: Check) -> Check:
    """A check of a list whose items all pass."""

    def check_items(value: Any) -> list[Any]:
        return [check_at(position, check, item) for position, item in enumerate(_array(value))]

    return check_items


def object_of(fields: Fields, unknown_keys: UnknownKeys = "drop") -> Check:
    """A check of an object with these keys. Unknown keys are removed, kept unchecked, or an error."""
    required = tuple(field.name for field in fields.values() if field.required)

    def check_object(value: Any) -> dict[str, Any]:
        given = _object(value)
        for name in required:
            if name not in given:
                raise ShapeError("this key is missing", json_path=f"$.{name}")
        cleaned: dict[str, Any] = {}
        for name, item in given.items():
            field = fields.get(name)
            if field is not None:
                cleaned[name] = check_at(name, field.check, item)
            elif unknown_keys == "keep":
                cleaned[name] = item
            elif unknown_keys == "refuse":
                raise ShapeError("nobody knows this key", json_path=f"$.{name}")
        return cleaned

    return check_object


def chosen_by(key: str, options: Mapping[str, Check], problem: str) -> Check:
    """A check that the value of a key selects."""

    def check(value: Any) -> Any:
        chosen = _object(value).get(key)
        option = options.get(chosen) if isinstance(chosen, str) else None
        if option is None:
            raise ShapeError(f"{problem}: {chosen!r:.60}", json_path=f"$.{key}")
        return option(value)

    return check


def check_at(place: str | int, check: Check, value: Any) -> Any:
    """Check the value at a key or index; errors get its path."""
    try:
        return check(value)
    except ShapeError as error:
        step = f"[{place}]" if isinstance(place, int) else f".{place}"
        raise ShapeError(error.reason, json_path=f"${step}{error.json_path[1:]}") from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ShapeError(f"expected an object, got {_kind(value)}")
    return cast("dict[str, Any]", value)


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ShapeError(f"expected a list, got {_kind(value)}")
    return cast("list[Any]", value)


_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def _kind(value: Any) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "something else")


_VALUE_CHECKS: dict[Any, Check] = {
    Any: check_any,
    str: check_text,
    bool: check_flag,
    dict[str, Any]: check_record,
    dict[str, str]: check_texts,
    ProviderMetadata: check_provider_metadata,
}


_PROBLEMS = {"sourceType": "unknown kind of source", "type": "no part of a user's message"}
"""Key that distinguishes the structs of a union -> the error if its value selects none."""
