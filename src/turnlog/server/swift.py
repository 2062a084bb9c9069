"""Swift structs of the API's schemas, for clients: `Codable`, with every field of a schema and no other.

A field that may be left out or null is optional. Values that the API may add to (kinds, states, members of a union) are
kept as they are, so that an older client reads the answers of a newer server.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

_BEGINNING: Final = """// Made of the API's schemas by `python -m turnlog.hub.client_models`; not to be edited.

/// Any JSON.
public enum JSONValue: Codable, Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

/// Values of the API. They are in a namespace, because Swift has a `Task` of its own.
public enum Turnlog {
"""

_PLAIN: Final = {"string": "String", "integer": "Int", "number": "Double", "boolean": "Bool"}

_WORDS: Final = frozenset(
    {"as", "case", "class", "default", "extension", "in", "internal", "is", "operator", "protocol", "public", "repeat"}
)
"""Names that Swift has for itself."""

_REFERENCE: Final = "$ref"


class _Unions:
    """The unions of the schemas, each under a name that its members share."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._taken = set(schemas)
        self._names: dict[str, str] = {}
        self.found: dict[str, dict[str, Any]] = {}

    def name(self, schema: Mapping[str, Any]) -> str:
        """The name of a union with a discriminator."""
        key = json.dumps(schema["discriminator"], sort_keys=True)
        if key not in self._names:
            members = [_name_of(choice) for choice in schema["anyOf"]]
            words = Counter(re.sub(r".*(?=[A-Z])", "", member) for member in members)
            name = words.most_common(1)[0][0]
            if name in self._taken:
                raise ValueError(f"there are two kinds of {name}")
            self._taken.add(name)
            self._names[key] = name
            self.found[name] = dict(schema)
        return self._names[key]


def swift_types(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """Swift of OpenAPI's `components.schemas`, in the order of their names.

    Raises ValueError for a struct that contains itself, which Swift has not.
    """
    unions = _Unions(schemas)
    declarations = [_declaration(name, schemas[name], unions) for name in sorted(schemas)]
    declarations += [_union(name, unions.found[name]) for name in sorted(unions.found)]
    _check_sizes(schemas)
    body = "\n".join(declarations)
    return f"{_BEGINNING}{body}}}\n"


def _declaration(name: str, schema: Mapping[str, Any], unions: _Unions) -> str:
    comment = _comment(schema.get("description"), "    ")
    if "enum" in schema:
        return comment + _values(name, schema["enum"])
    if "properties" not in schema:
        return f"{comment}    public typealias {name} = {_type(schema, unions)}\n"
    required = set(schema.get("required", ()))
    fields: list[str] = []
    keys: list[str] = []
    for key, field in schema["properties"].items():
        own = _camel(key)
        optional = "" if key in required and not _may_be_null(field) else "?"
        if "enum" in field:
            fields.append(f"        /// One of: {', '.join(map(str, field['enum']))}.\n")
        fields.append(f"        public var {own}: {_type(field, unions)}{optional}\n")
        keys.append(f"            case {own}\n" if own.strip("`") == key else f'            case {own} = "{key}"\n')
    coding = f"\n        public enum CodingKeys: String, CodingKey {{\n{''.join(keys)}        }}\n" if keys else ""
    return f"{comment}    public struct {name}: Codable, Equatable, Sendable {{\n{''.join(fields)}{coding}    }}\n"


def _values(name: str, values: Iterable[str]) -> str:
    """A string of which some values have names."""
    named = "".join(
        f'        public static let {_camel(re.sub("[^A-Za-z0-9]", "_", value))} = {name}(rawValue: "{value}")\n'
        for value in values
    )
    return (
        f"    public struct {name}: RawRepresentable, Codable, Hashable, Sendable {{\n"
        f"        public let rawValue: String\n"
        f"        public init(rawValue: String) {{ self.rawValue = rawValue }}\n{named}    }}\n"
    )


def _union(name: str, schema: Mapping[str, Any]) -> str:
    tag = schema["discriminator"]["propertyName"]
    members = {value: _name_of({_REFERENCE: place}) for value, place in schema["discriminator"]["mapping"].items()}
    cases = {value: _camel(re.sub("[^A-Za-z0-9]", "_", value)) for value in members}
    declared = "".join(f"        case {cases[value]}({member})\n" for value, member in members.items())
    read = "".join(
        f'            case "{value}": self = .{cases[value]}(try {member}(from: decoder))\n'
        for value, member in members.items()
    )
    written = "".join(
        f"            case .{case}(let value): try value.encode(to: encoder)\n" for case in cases.values()
    )
    return (
        f"    /// One of several kinds, by its field `{tag}`; `other` is one of a newer server.\n"
        f"    public enum {name}: Codable, Equatable, Sendable {{\n{declared}        case other(JSONValue)\n\n"
        f'        private enum Tag: String, CodingKey {{ case tag = "{tag}" }}\n\n'
        f"        public init(from decoder: any Decoder) throws {{\n"
        f"            switch try decoder.container(keyedBy: Tag.self).decode(String.self, forKey: .tag) {{\n{read}"
        f"            default: self = .other(try JSONValue(from: decoder))\n            }}\n        }}\n\n"
        f"        public func encode(to encoder: any Encoder) throws {{\n            switch self {{\n{written}"
        f"            case .other(let value): try value.encode(to: encoder)\n            }}\n        }}\n    }}\n"
    )


def _type(schema: Mapping[str, Any], unions: _Unions) -> str:
    """The type of a value that is there."""
    if _REFERENCE in schema:
        return _name_of(schema)
    if "discriminator" in schema:
        return unions.name(schema)
    if "anyOf" in schema:
        types = dict.fromkeys(_type(choice, unions) for choice in schema["anyOf"] if not _is_null(choice))
        return next(iter(types)) if len(types) == 1 else "JSONValue"
    kind = schema.get("type")
    if kind == "array":
        return f"[{_type(schema.get('items') or {}, unions)}]"
    if kind == "object":
        return f"[String: {_type(schema.get('additionalProperties') or {}, unions)}]"
    return _PLAIN.get(str(kind), "JSONValue")


def _name_of(schema: Mapping[str, Any]) -> str:
    return str(schema[_REFERENCE]).rpartition("/")[2]


def _is_null(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "null"


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    return any(map(_is_null, schema.get("anyOf", ())))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    joined = (first[:1].lower() + first[1:]) + "".join(word[:1].upper() + word[1:] for word in rest)
    joined = f"_{joined}" if joined[:1].isdigit() else joined
    return f"`{joined}`" if joined in _WORDS else joined


def _comment(description: str | None, indent: str) -> str:
    first = " ".join((description or "").partition("\n\n")[0].split())
    return f"{indent}/// {first}\n" if first else ""


def _check_sizes(schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """What a struct holds is inside of it; arrays and dictionaries are elsewhere."""

    def inside(schema: Mapping[str, Any]) -> list[str]:
        if _REFERENCE in schema:
            return [_name_of(schema)]
        return [name for choice in schema.get("anyOf", ()) for name in inside(choice)]

    below = {
        name: [each for field in schema.get("properties", {}).values() for each in inside(field)]
        for name, schema in schemas.items()
    }
    for name in below:
        reached = set(below[name])
        while more := {each for known in reached for each in below.get(known, ())} - reached:
            reached |= more
        if name in reached:
            raise ValueError(f"{name} contains itself")
