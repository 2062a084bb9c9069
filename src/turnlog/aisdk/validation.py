"""`validate_ui_messages`: accepts and rejects like the AI SDK's `validateUIMessages`, for each major version.

Keys that a version does not know are removed at every level, as in the original; to keep them, parse instead
(`parse_ui_messages`). Schemas are callables that return the value (or a changed one) or raise ValueError, so msgspec,
pydantic (its ValidationError is a ValueError) or jsonschema can be used in three lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from turnlog.aisdk.checks import check_at, message_check
from turnlog.aisdk.codec import build_message, to_plain
from turnlog.aisdk.json_text import parse_json, same_json
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.arguments import check_fields, checked, refusal
from turnlog.errors import ShapeError

Schema: TypeAlias = Callable[[Any], Any]
"""Takes a value, returns it (perhaps changed) or raises ValueError. A missing value is UNSET."""


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schemas of a tool's calls."""

    input: Schema
    output: Schema | None = None

    def __post_init__(self) -> None:
        """Raise TypeError for a field of the wrong type."""
        check_fields(self)


_TERMINAL = {
    5: ("output-available", "output-error"),
    6: ("output-available", "output-error", "output-denied"),
    7: ("output-available", "output-error", "output-denied"),
}
"""The states in which a call of a tool that no longer exists stays in the history."""

_KEPT_IN_BOTH = ("toolCallId", "providerExecuted", "callProviderMetadata", "state", "input")
_KEPT_OF_UNAVAILABLE_5 = {
    "output-available": (*_KEPT_IN_BOTH, "output", "preliminary"),
    "output-error": (*_KEPT_IN_BOTH, "errorText"),
}
"""The fields that 5 keeps of a call whose tool no longer exists; later versions keep all."""


@checked(messages=None)
def validate_ui_messages(
    messages: Sequence[UIMessage | dict[str, Any]] | bytes | str,
    *,
    version: Version = 7,
    metadata_schema: Schema | None = None,
    data_schemas: Mapping[str, Schema] | None = None,
    tools: Mapping[str, ToolSchema] | None = None,
) -> list[UIMessage]:
    """The messages as the version's newest release returns them.

    Args:
        messages: A JSON array as text or parsed, or messages.
        version: The AI SDK version; of a release only the major version counts.
        metadata_schema: For the metadata of every message.
        data_schemas: By the name of a data part without `data-`. If given, every data part needs one.
        tools: By tool name. If given, calls of other tools become `dynamic-tool` parts once they have an outcome, and
            are an error before; so do failed calls, and those with empty input, that do not fit the schema.

    Raises:
        ShapeError: They are invalid; the first problem, with its path.
    """
    major = sdk_version(version).major
    validator = _Validator(major, metadata_schema, data_schemas, tools)
    return [build_message(message) for message in validator.validate(_plain_messages(messages))]


class _Validator:
    def __init__(
        self,
        major: int,
        metadata_schema: Schema | None,
        data_schemas: Mapping[str, Schema] | None,
        tools: Mapping[str, ToolSchema] | None,
    ) -> None:
        self._major = major
        self._metadata_schema = metadata_schema
        self._data_schemas = data_schemas
        self._tools = tools

    def validate(self, values: list[Any]) -> list[dict[str, Any]]:
        if not values:
            raise ShapeError("messages must not be empty")
        check = message_check(self._major)
        messages = [check_at(position, check, value) for position, value in enumerate(values)]
        for position, message in enumerate(messages):
            check_at(position, self._apply_schemas, message)
        return messages

    def _apply_schemas(self, message: dict[str, Any]) -> None:
        if self._metadata_schema is not None:
            _apply(self._metadata_schema, message, "metadata")
        message["parts"] = check_at("parts", self._apply_to_parts, message["parts"])

    def _apply_to_parts(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [check_at(position, self._apply_to_part, part) for position, part in enumerate(parts)]

    def _apply_to_part(self, part: dict[str, Any]) -> dict[str, Any]:
        kind: str = part["type"]
        if self._data_schemas is not None and kind.startswith("data-"):
            _apply_data_schema(self._data_schemas, part)
        if self._tools is not None and kind.startswith("tool-"):
            return self._apply_tool_schema(self._tools, part)
        return part

    def _apply_tool_schema(self, tools: Mapping[str, ToolSchema], part: dict[str, Any]) -> dict[str, Any]:
        tool = tools.get(part["type"][5:])
        if tool is None:
            if part["state"] not in _TERMINAL[self._major]:
                raise ShapeError(f"no tool schema found for tool part {part['type'][5:]}", json_path="$.input")
            return self._unavailable(part)
        fits = not self._input_is_checked(part) or self._input_fits(tool, part)
        if part["state"] == "output-available" and tool.output is not None:
            _check_schema(tool.output, part["output"], "output")
        return part if fits else self._unavailable(part)

    def _input_is_checked(self, part: dict[str, Any]) -> bool:
        state = part["state"]
        if self._major == 5 and state not in ("input-available", "output-available", "output-error"):
            return False
        if state == "output-error":
            return "input" in part or self._schema_input(part) is not None
        return state != "input-streaming"

    def _input_fits(self, tool: ToolSchema, part: dict[str, Any]) -> bool:
        """Whether the input fits the tool. Raises ShapeError if it does not and the call must be valid."""
        schema_input = self._schema_input(part)
        value = part.get("input", msgspec.UNSET) if schema_input is None else schema_input["inputSchemaInput"]
        try:
            result = _check_schema(tool.input, value, "input")
            if schema_input is not None and not same_json(result, part.get("input", msgspec.UNSET)):
                raise ShapeError("tool input is not what its schema makes of inputSchemaInput", json_path="$.input")
        except ShapeError:
            if part["state"] == "output-error" or (part["state"] == "output-available" and part["input"] == {}):
                return False
            raise
        return True

    def _schema_input(self, part: dict[str, Any]) -> dict[str, Any] | None:
        """The original input in the approval, if the tool's schema had changed it."""
        approval: dict[str, Any] = part.get("approval", {})
        return approval if "inputSchemaInput" in approval else None

    def _unavailable(self, part: dict[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in part.items() if name != "type"}
        if self._major == 5:
            kept = _KEPT_OF_UNAVAILABLE_5[part["state"]]
            fields = {name: value for name, value in fields.items() if name in kept}
        return {"type": "dynamic-tool", "toolName": part["type"][5:], **fields, "dynamic": False}


def _apply_data_schema(schemas: Mapping[str, Schema], part: dict[str, Any]) -> None:
    name = part["type"][5:]
    if name not in schemas:
        raise ShapeError(f"no data schema found for data part {name}", json_path="$.data")
    _apply(schemas[name], part, "data")


def _apply(schema: Schema, owner: dict[str, Any], name: str) -> None:
    """Replace a value by the result of its schema."""
    result = _check_schema(schema, owner.get(name, msgspec.UNSET), name)
    if result is msgspec.UNSET:
        owner.pop(name, None)
    else:
        owner[name] = result


def _check_schema(schema: Schema, value: Any, name: str) -> Any:
    try:
        return schema(value)
    except ValueError as error:
        raise ShapeError(f"refused by its schema: {error}", json_path=f"$.{name}") from error


def _plain_messages(messages: Sequence[UIMessage | dict[str, Any]] | bytes | str) -> list[Any]:
    values: Any = messages
    if isinstance(messages, bytes | str):
        try:
            values = parse_json(messages, unsafe_keys=True)
        except ValueError as error:
            raise ShapeError(f"not JSON: {error}") from error
    if not isinstance(values, list | tuple):
        # JSON of another shape is invalid, as in AI SDK; what is no JSON at all is a mistake of the caller's.
        if values is None or isinstance(values, bool | int | float | str | dict):
            raise ShapeError("expected a list of messages")
        raise refusal("messages", values, "a list of messages, or their JSON as text")
    return [to_plain(value) for value in cast("list[Any]", values)]
