"""Walks whatever is exported: values of the model, plain JSON values, exact JSON, files that are text.

Everything keeps its type and its order; exact JSON keeps every byte besides the strings that held a secret. Times,
numbers and binary contents are passed over.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import msgspec

from turnlog.redact.masking import SHORTEST_TOKEN, mask_named, mask_text

AnyT = TypeVar("AnyT")

_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s{0,100}:)?|}')
"""A string of JSON, and whether it names a field; and where fields end."""

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")


class Masked(NamedTuple):
    """Secrets of one kind at one place."""

    rule: str
    place: str
    times: int


class Redactor:
    """Takes secrets out of one value after another, and keeps the report."""

    def __init__(self) -> None:
        """Begin with nothing masked."""
        self._found: dict[str, Counter[str]] = {}

    @property
    def report(self) -> list[Masked]:
        """What was masked, in the order in which the places were met."""
        return [Masked(rule, place, times) for place, rules in self._found.items() for rule, times in rules.items()]

    def redact(self, value: AnyT, place: str = "$") -> AnyT:
        """The value without secrets, of the same type. `place` names its position in the report.

        Takes values of the model, mappings, lists, texts, bytes, `msgspec.Raw`, and what else JSON holds.
        """
        return cast("AnyT", self._walk(value, place, ""))

    def redact_json(self, data: bytes, place: str = "$") -> bytes:
        """Exact JSON without secrets; valid JSON stays valid."""
        return self._json(data, place)

    def _walk(self, value: object, place: str, name: str) -> Any:
        walk = self._walks.get(type(value))
        if walk is not None:
            return walk(self, value, place, name)
        return self._fields(value, place, name) if isinstance(value, msgspec.Struct) else value

    def _fields(self, value: msgspec.Struct, place: str, _name: str) -> msgspec.Struct:
        changed: dict[str, Any] = {}
        for field in value.__struct_fields__:
            before = getattr(value, field)
            after = self._walk(before, f"{place}.{field}", field)
            if after is not before:
                changed[field] = after
        return msgspec.structs.replace(value, **changed) if changed else value

    def _mapping(self, value: dict[Any, Any], place: str, _name: str) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        same = True
        for key, item in value.items():
            named = self._free_name(key, f"{place} (a name)", made)
            made[named] = self._walk(item, f"{place}.{named}", str(key))
            same = same and named is key and made[named] is item
        return value if same else made

    def _free_name(self, key: Any, place: str, taken: dict[Any, Any]) -> Any:
        """The name without secrets; two that become the same get a number."""
        masked = self._text(key, place, "") if type(key) is str and len(key) >= SHORTEST_TOKEN else key
        if masked is key:
            return key
        number, free = 1, masked
        while free in taken:
            number, free = number + 1, f"{masked} {number + 1}"
        return free

    def _items(self, value: Any, place: str, name: str) -> Any:
        made = [self._walk(item, f"{place}[{number}]", name) for number, item in enumerate(value)]
        if all(after is before for after, before in zip(made, value, strict=True)):
            return value
        return made if type(value) is list else tuple(made)

    def _raw(self, value: msgspec.Raw, place: str, name: str) -> msgspec.Raw:
        before = bytes(value)
        after = self._json(before, place, name)
        return value if after is before else msgspec.Raw(after)

    def _json(self, data: bytes, place: str, name: str = "") -> bytes:
        text = data.decode(errors="surrogateescape")
        names = [name]

        def replace(match: re.Match[str]) -> str:
            return self._json_string(match, place, names)

        masked = _STRING.sub(replace, text)
        return data if masked == text else masked.encode(errors="surrogateescape")

    def _json_string(self, match: re.Match[str], place: str, names: list[str]) -> str:
        content = match[1]
        if content is None:
            names[0] = ""
            return match[0]
        text = _unescape(content) if "\\" in content else content
        if match[2] is not None:
            names[0] = text
            masked = self._text(text, f"{place} (a name)", "") if len(text) >= SHORTEST_TOKEN else text
        else:
            masked = self._text(text, f"{place}.{names[0]}" if names[0] else place, names[0])
        return match[0] if masked is text else msgspec.json.encode(masked).decode() + (match[2] or "")

    def _text(self, value: str, place: str, name: str) -> str:
        if value.startswith("data:"):
            return self._data_url(value, place)
        found: Counter[str] = Counter()
        masked = mask_named(name, value, found) if name else mask_text(value, found)
        self._note(place, found)
        return masked if found else value

    def _data_url(self, value: str, place: str) -> str:
        head = _DATA_URL.match(value)
        if head is None:
            return self._noted(value, place)
        try:
            content = base64.b64decode(value[head.end() :], validate=True)
        except (binascii.Error, ValueError):
            return self._noted(value, place)
        masked = self._bytes(content, place, "")
        return value if masked is content else head[0] + base64.b64encode(masked).decode()

    def _noted(self, value: str, place: str) -> str:
        found: Counter[str] = Counter()
        masked = mask_text(value, found)
        self._note(place, found)
        return masked if found else value

    def _bytes(self, value: bytes, place: str, _name: str) -> bytes:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value
        masked = self._noted(text, place)
        return value if masked is text else masked.encode()

    def _note(self, place: str, found: Counter[str]) -> None:
        if found:
            # A secret may also be in the name of a field that names the place.
            self._found.setdefault(mask_text(place), Counter()).update(found)

    _walks: ClassVar[dict[type, Callable[[Redactor, Any, str, str], Any]]] = {
        str: _text,
        dict: _mapping,
        list: _items,
        tuple: _items,
        bytes: _bytes,
        msgspec.Raw: _raw,
    }


def _unescape(content: str) -> str:
    """The text of a JSON string; one that is not valid is taken as it is."""
    try:
        return msgspec.json.decode(f'"{content}"', type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return content
