"""Values as PostgreSQL keeps them: what the driver would make of texts, integers and sums is changed here.

No text in PostgreSQL holds NUL (character 0), which texts of logs may. It is stored as 1 1, and character 1 as 1 2: the
order of texts stays that of SQLite, and every other text is stored as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import BytesBinaryDumper, StrDumper

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext


def escape(text: str) -> str:
    """A text as PostgreSQL can keep it."""
    if not _has_escaped(text):
        return text
    return text.replace("\1", "\1\2").replace("\0", "\1\1")


def escape_rows(rows: Sequence[Sequence[Any]], texts: Collection[int]) -> Sequence[Sequence[Any]]:
    """Rows that are copied, with the texts at these places as PostgreSQL can keep them."""
    # A look at all texts of a column at once: nearly none has such a character.
    columns = [[row[at] for row in rows] for at in texts]
    wrong = [
        at for at, column in zip(texts, columns, strict=True) if _has_escaped("".join([text or "" for text in column]))
    ]
    if not wrong:
        return rows
    return [
        [escape(value) if at in wrong and value is not None else value for at, value in enumerate(row)] for row in rows
    ]


def _has_escaped(text: str) -> bool:
    return "\0" in text or "\1" in text


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    return text.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in text else text


class _TextDumper(StrDumper):
    """A parameter that is a text has that type: PostgreSQL guesses none for `? IS NULL`, and another for `?` alone."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape(obj))


class _FlagDumper(Int8Dumper):
    """Flags are integers, as in SQLite."""

    def dump(self, obj: bool) -> Buffer | None:
        return super().dump(int(obj))


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return unescape(bytes(data).decode())


class _FlagLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumberLoader(Loader):
    """Sums of integers are of an exact type with any number of digits: integers again."""

    def load(self, data: Buffer) -> int | float:
        digits = bytes(data)
        return float(digits) if b"." in digits else int(digits)


def register(context: AdaptContext) -> None:
    """Let a connection read and write values so."""
    adapters: AdaptersMap = context.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(bytes, BytesBinaryDumper)  # the driver's own last one is slow in copied rows
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(bool, _FlagDumper)
    for name in ("text", "varchar", "bpchar"):
        adapters.register_loader(name, _TextLoader)
    adapters.register_loader("bool", _FlagLoader)
    adapters.register_loader("numeric", _NumberLoader)
