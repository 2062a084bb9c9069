"""Reads Swift's `Codable` declarations, and decodes JSON as Swift's `JSONDecoder` would by them.

Written from Swift's rules, apart from what makes the source: a value that is not optional must be there and not null, a
number for an `Int` is whole, a struct takes its fields by its coding keys. Stricter than Swift in one thing: a field
that no struct names is an error, because it would be lost.
"""

from __future__ import annotations

import re
from typing import Any, Final

_STRUCT: Final = re.compile(r"^    public struct (\w+): Codable, Equatable, Sendable \{\n(.*?)^    \}", re.S | re.M)
_FIELD: Final = re.compile(r"^        public var (`?\w+`?): (.+)$", re.M)
_KEYS: Final = re.compile(r"public enum CodingKeys: String, CodingKey \{\n(.*?)^        \}", re.S | re.M)
_KEY: Final = re.compile(r'^            case (`?\w+`?)(?: = "(.*)")?$', re.M)
_RAW: Final = re.compile(r"^    public struct (\w+): RawRepresentable, Codable", re.M)
_UNION: Final = re.compile(r"^    public enum (\w+): Codable, Equatable, Sendable \{\n(.*?)^    \}", re.S | re.M)
_TAG: Final = re.compile(r'private enum Tag: String, CodingKey \{ case tag = "(\w+)" \}')
_CASE: Final = re.compile(r'^            case "(.*)": self = \.`?\w+`?\(try (\w+)\(from: decoder\)\)$', re.M)
_ALIAS: Final = re.compile(r"^    public typealias (\w+) = (.+)$", re.M)

_PLAIN: Final[dict[str, tuple[type, ...]]] = {
    "String": (str,),
    "Int": (int,),
    "Double": (int, float),
    "Bool": (bool,),
}


class WrongValueError(Exception):
    """A value that Swift would not decode, or of which it would lose something."""


class SwiftTypes:
    """The declarations of a source."""

    def __init__(self, source: str) -> None:
        self.structs: dict[str, dict[str, str]] = {}
        for name, body in _STRUCT.findall(source):
            types = dict(_FIELD.findall(body))
            found = _KEYS.search(body)
            keys = {case: key or case.strip("`") for case, key in _KEY.findall(found[1])} if found else {}
            if set(keys) != set(types):
                raise ValueError(f"{name}: the coding keys are not those of its fields")
            self.structs[name] = {keys[case]: types[case] for case in types}
        self._raw = set(_RAW.findall(source))
        self._aliases = dict(_ALIAS.findall(source))
        self.unions: dict[str, tuple[str, dict[str, str]]] = {}
        for name, body in _UNION.findall(source):
            tag = _TAG.search(body)
            assert tag is not None, name
            self.unions[name] = tag[1], dict(_CASE.findall(body))

    def decode(self, value: Any, type: str, place: str = "$") -> None:
        """Raise WrongValueError if the value is not one of the type."""
        if type.endswith("?"):
            if value is not None:
                self.decode(value, type[:-1], place)
            return
        if type == "JSONValue":
            return
        if value is None:
            raise WrongValueError(f"{place}: null is no {type}")
        if type.startswith("[String: "):
            self._expect(value, dict, type, place)
            for key, item in value.items():
                self.decode(item, type[len("[String: ") : -1], f"{place}.{key}")
        elif type.startswith("["):
            self._expect(value, list, type, place)
            for number, item in enumerate(value):
                self.decode(item, type[1:-1], f"{place}[{number}]")
        elif type in _PLAIN:
            _check_plain(value, type, place)
        elif type in self._raw:
            self._expect(value, str, type, place)
        elif type in self._aliases:
            self.decode(value, self._aliases[type], place)
        elif type in self.unions:
            self._expect(value, dict, type, place)
            tag, cases = self.unions[type]
            if value.get(tag) not in cases:
                raise WrongValueError(f"{place}: no case for {value.get(tag)!r}")
            self.decode(value, cases[value[tag]], place)
        else:
            self._struct(value, type, place)

    def _struct(self, value: Any, type: str, place: str) -> None:
        fields = self.structs.get(type)
        if fields is None:
            raise WrongValueError(f"{place}: there is no type {type}")
        self._expect(value, dict, type, place)
        if lost := sorted(set(value) - set(fields)):
            raise WrongValueError(f"{place}: {type} has no {', '.join(lost)}")
        for key, kind in fields.items():
            if key not in value and not kind.endswith("?"):
                raise WrongValueError(f"{place}: {type} needs {key}")
            self.decode(value.get(key), kind, f"{place}.{key}")

    @staticmethod
    def _expect(value: Any, kind: type, type: str, place: str) -> None:
        if not isinstance(value, kind):
            raise WrongValueError(f"{place}: {value!r} is no {type}")


def _check_plain(value: Any, type: str, place: str) -> None:
    if not isinstance(value, _PLAIN[type]) or (isinstance(value, bool) and type != "Bool"):
        raise WrongValueError(f"{place}: {value!r} is no {type}")
    if type == "Int" and not -(1 << 63) <= value < 1 << 63:
        raise WrongValueError(f"{place}: {value} does not fit")
