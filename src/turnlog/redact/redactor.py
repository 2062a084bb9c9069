"""Walks whatever is exported: values of the model, plain JSON values, exact JSON, files that are text.

Everything keeps its type and its order; exact JSON keeps every byte besides the strings that held a secret. Times,
numbers and binary contents are not looked at, except the text chunks of a PNG.

What belongs together is walked twice: `learn` collects the secrets that only their place shows, and which long texts
have none; `redact` takes out what the rules find and what was learned.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import msgspec

from turnlog.redact import pictures
from turnlog.redact.edges import find_cut_secrets
from turnlog.redact.known import KnownValues
from turnlog.redact.masking import SecretSpan, find_named, find_secrets, find_web_keys, joined, mask_spans, mask_text
from turnlog.redact.names import secret_name
from turnlog.redact.triggers import SHORTEST_TOKEN

AnyT = TypeVar("AnyT")

_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s{0,100}:)?|}')
"""A string of JSON, and whether it names a field; and where fields end."""

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")

_PNG = base64.b64encode(pictures.SIGNATURE)[:10].decode()
"""How the base64 of a PNG begins."""

_NAMING = frozenset(("name", "Name", "key", "Key", "variable", "parameter"))
_VALUES = ("value", "Value")
"""Fields that name the field `value` next to them: `{"name": "API_KEY", "value": "…"}`."""


_SHORTEST_KEPT = 128
"""Of longer texts it is kept that no rule finds anything in them."""


class Masked(NamedTuple):
    """Secrets of one kind at one place."""

    rule: str
    place: str
    times: int


class Learned(IntEnum):
    """What was learned of a value."""

    NOTHING = 0
    SHAPES = 1
    """It has secrets, all of which their own shape shows."""
    VALUES = 2
    """It has secrets that are known from now on, wherever they stand alone."""


class Redactor:
    """Takes secrets out of one value after another, and keeps the report."""

    def __init__(self, known: KnownValues | None = None) -> None:
        """Begin with nothing masked, and with these known values, which `learn` adds to; by default with none."""
        self._found: dict[str, Counter[str]] = {}
        self._known = KnownValues() if known is None else known
        self._clean: set[bytes] = set()
        self._learning = False
        self._learned = Counter[Learned]()
        """Secrets that were met while learning."""
        self._ids: dict[str, str] = {}
        """Ids and names that had a secret -> what they are without, each another."""
        self._taken: set[str] = set()
        self._is_clean = False
        """Whether nothing that the rules find is in what is walked."""

    @property
    def known(self) -> KnownValues:
        """The secrets that were learned."""
        return self._known

    @property
    def report(self) -> list[Masked]:
        """What was masked, in the order in which the places were met."""
        return [Masked(rule, place, times) for place, rules in self._found.items() for rule, times in rules.items()]

    def learn(self, value: object) -> Learned:
        """Look for secrets that only a name or their context shows, so that `redact` finds them wherever they stand.

        Takes what `redact` takes. What belongs together, such as all messages of a session, is learned first.
        """
        before = self._learned.copy()
        self._learning = True
        try:
            self._walk(value, "", "")
        finally:
            self._learning = False
        return max((kind for kind, count in self._learned.items() if count > before[kind]), default=Learned.NOTHING)

    def redact(self, value: AnyT, place: str = "$", *, is_clean: bool = False) -> AnyT:
        """The value without secrets, of the same type. `place` names its position in the report.

        Takes values of the model, mappings, lists, texts, bytes, `msgspec.Raw`, and what else JSON holds. `is_clean`:
        nothing was learned of this value, so only what others show to be a secret is looked for.
        """
        if is_clean and not len(self._known):
            return value
        self._is_clean = is_clean
        try:
            return cast("AnyT", self._walk(value, place, ""))
        finally:
            self._is_clean = False

    def redact_cut(self, text: str, place: str = "$") -> str:
        """The text without secrets, and without what could be a piece of one at its end, where it was cut."""
        known = [*self._known.find(text), *self._known.find_cut(text)]
        return self._masked(text, joined([*find_cut_secrets(text), *known]), place)

    def redact_id(self, text: str, place: str = "$") -> str:
        """An id or a name without secrets: the same one becomes the same, and two stay two."""
        return self._id(text, self._found_by_rules(text, ""), place)

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
            if type(before) is str and (field == "id" or field.endswith("_id")):
                # Known values are not looked for: an id may have one by chance.
                after = self._id(before, self._found_by_rules(before, field), f"{place}.{field}")
            elif field == "tool_name":
                after = self._id(before, self._spans(before), f"{place}.{field}")
            elif field.endswith("_ids"):
                after = tuple([self._id(each, self._found_by_rules(each, ""), f"{place}.{field}") for each in before])
                after = before if after == before else after
            else:
                after = self._walk(before, f"{place}.{field}", field)
            if after is not before:
                changed[field] = after
        return msgspec.structs.replace(value, **changed) if changed else value

    def _id(self, text: str, spans: list[SecretSpan], place: str) -> str:
        """The text without these secrets, another one for each text: what has an id is found by it."""
        masked = self._masked(text, spans, place)
        if masked == text:
            return text
        if text not in self._ids:
            number, free = 1, masked
            while free in self._taken:
                number, free = number + 1, f"{masked}-{number + 1}"
            self._taken.add(free)
            self._ids[text] = free
        return self._ids[text]

    def _mapping(self, value: dict[Any, Any], place: str, _name: str) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        same = True
        beside = _name_beside(value)
        for key, item in value.items():
            named = self._free_name(key, f"{place} (a name)", made)
            made[named] = self._walk(item, f"{place}.{named}", _told_name(str(key), beside))
            same = same and named is key and made[named] is item
        return value if same else made

    def _free_name(self, key: Any, place: str, taken: dict[Any, Any]) -> Any:
        """The name without secrets; two that become the same get a number."""
        masked = self._name(key, place) if type(key) is str else key
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
        digest = _digest(data, name)
        text = data.decode(errors="surrogateescape")
        if (self._is_clean or digest in self._clean) and not self._known.may_be_in_json(text):
            return data
        learned = self._learned.total()
        made = self._masked_json(data, text, place, name)
        if self._learning and learned == self._learned.total():
            self._clean.add(digest)
        return made

    def _masked_json(self, data: bytes, text: str, place: str, name: str) -> bytes:
        names = [name, ""]

        def replace(match: re.Match[str]) -> str:
            return self._json_string(match, place, names)

        masked = _STRING.sub(replace, text)
        if '"kty"' in masked:
            masked = self._masked(masked, find_web_keys(masked), place)
        return data if masked == text else masked.encode(errors="surrogateescape")

    def _json_string(self, match: re.Match[str], place: str, names: list[str]) -> str:
        content = match[1]
        if content is None:
            names[:] = ["", ""]
            return match[0]
        text = _unescape(content) if "\\" in content else content
        if match[2] is not None:
            names[0] = text
            masked = self._name(text, f"{place} (a name)")
        else:
            name = names[0]
            masked = self._text(text, f"{place}.{name}" if name else place, _told_name(name, names[1]))
            if name in _NAMING:
                names[1] = text
        return match[0] if masked is text else msgspec.json.encode(masked).decode() + (match[2] or "")

    def _text(self, value: str, place: str, name: str) -> str:
        if value.startswith("data:"):
            return self._data_url(value, place)
        if value.startswith(_PNG):
            return self._base64(value, place)
        return self._masked(value, self._spans(value, name), place)

    def _name(self, key: str, place: str) -> str:
        """The name of a field, which may be a secret itself."""
        spans = self._known.find(key) if len(key) < SHORTEST_TOKEN else self._spans(key)
        return self._masked(key, spans, place)

    def _spans(self, text: str, name: str = "") -> list[SecretSpan]:
        """The secrets in a text: what the rules find, and what is known."""
        found = self._found_by_rules(text, name)
        known = [] if self._learning else self._known.find(text)
        return joined([*found, *known]) if known else found

    def _found_by_rules(self, text: str, name: str) -> list[SecretSpan]:
        if self._is_clean:
            return []
        digest = _digest(text.encode(errors="surrogatepass")) if len(text) > _SHORTEST_KEPT else b""
        found: list[SecretSpan] = []
        if digest not in self._clean:
            found = find_secrets(text)
            if self._learning and digest and not found:
                self._clean.add(digest)
        return found or (find_named(name, text) if name else [])

    def _masked(self, text: str, spans: list[SecretSpan], place: str) -> str:
        """The text with these spans masked. Adds them to the report, or to what is known."""
        if not spans:
            return text
        if self._learning:
            for span in spans:
                is_known = self._known.add(text[span.start : span.end], span.rule)
                self._learned[Learned.VALUES if is_known else Learned.SHAPES] += 1
            return text
        # A secret may also be in the name of a field that names the place.
        self._found.setdefault(mask_text(place), Counter()).update(span.rule for span in spans)
        return mask_spans(text, spans)

    def _data_url(self, value: str, place: str) -> str:
        head = _DATA_URL.match(value)
        if head is None:
            return self._noted(value, place)
        content = value[head.end() :]
        masked = self._base64(content, place)
        return value if masked is content else head[0] + masked

    def _base64(self, value: str, place: str) -> str:
        try:
            content = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return self._noted(value, place)
        masked = self._bytes(content, place, "")
        return value if masked is content else base64.b64encode(masked).decode()

    def _noted(self, value: str, place: str) -> str:
        return self._masked(value, self._spans(value), place)

    def _bytes(self, value: bytes, place: str, _name: str) -> bytes:
        if value.startswith(pictures.SIGNATURE):
            return pictures.mask_png(value, lambda text: self._noted(text, place))
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value
        masked = self._noted(text, place)
        return value if masked is text else masked.encode()

    _walks: ClassVar[dict[type, Callable[[Redactor, Any, str, str], Any]]] = {
        str: _text,
        dict: _mapping,
        list: _items,
        tuple: _items,
        bytes: _bytes,
        msgspec.Raw: _raw,
    }


def _digest(data: bytes, name: str = "") -> bytes:
    return blake2b(data, digest_size=16, key=name.encode(errors="surrogatepass")[:64]).digest()


def _name_beside(value: dict[Any, Any]) -> str:
    """The name that a field of this object gives to the field `value`."""
    return next((str(item) for key, item in value.items() if key in _NAMING and type(item) is str), "")


def _told_name(name: str, beside: str) -> str:
    """The name by which a value is judged: its own, or the one that the field next to it gives."""
    return beside if beside and name in _VALUES and secret_name(beside) is not None else name


def _unescape(content: str) -> str:
    """The text of a JSON string; one that is not valid is taken as it is."""
    try:
        return msgspec.json.decode(f'"{content}"', type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return content
