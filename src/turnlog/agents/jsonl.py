"""Reads records from lines of JSON, including those that crashes, full disks, bad encodings or two writers damaged.

A valid line costs one split and one typed decode. Any other line is searched for records, and whatever is wrong with it
becomes a diagnostic with its exact place. Nothing raises, and nothing is dropped silently. This module does not know
what records mean.

Text that JSON cannot represent is stored as `turnlog.model.codec` describes: a lone surrogate and a byte that is not
UTF-8 become U+FFFD; NaN and infinities become the strings "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from turnlog.agents.changes import Changes, Diagnostic
from turnlog.agents.decoding import REPLACED, DecodingProblem, LineContext, LosslessDecoder, salvage
from turnlog.model.codec import to_json

RecordT = TypeVar("RecordT", bound=msgspec.Struct)

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The exceptions that decoding raises for a text that is not a record."""

_EDGES = b" \t\r\n\x00"
_BOM = b"\xef\xbb\xbf"
_LEADING = re.compile(rb"(?:[ \t\r\n\x00]|\xef\xbb\xbf)*")
_OPENED = re.compile(rb'\{[ \t]*"')
_SEARCH_LIMIT = 8
"""A broken line is searched for records up to this multiple of its length, so that a huge one cannot block a sync."""

_LARGE_LINE = 1 << 20

REPAIRED = "text that JSON cannot hold (a lone surrogate, NaN, a control character) was replaced"


Reading: TypeAlias = tuple[RecordT, bytes, int, int, int]
"""A record, its JSON (the log's bytes, or repaired), its byte offset, its length, and the number of its line."""


def count_lines(data: bytes) -> int:
    """The number of lines, counting a last one without a newline."""
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def whole_lines(head: bytes) -> bytes:
    """The lines in the beginning of a file that may be records, for telling whose log it is.

    Without a last line that is cut off, unless it is the only one; and where the first line is no record, without all
    others that hold none either.
    """
    lines = head[: head.rfind(b"\n") + 1] or head
    if _OPENED.match(lines):
        return lines
    # An indented document, such as an export, is a thousand broken lines, which every agent would try to repair.
    return b"\n".join(line for line in lines.split(b"\n") if _OPENED.search(line))


class JsonLines(Generic[RecordT]):
    """Reads records of one struct type. All fields of the struct have defaults."""

    def __init__(
        self,
        kind: type[RecordT],
        *,
        first_keys: Sequence[str],
        plausible: Callable[[RecordT], bool],
        complete: type[RecordT] | None = None,
        strict: bool = True,
    ) -> None:
        """Set how records look, so that one can be found after the torn beginning of another.

        Args:
            kind: The struct to decode into.
            first_keys: Names with which a record's JSON may begin.
            plausible: Whether an object found in a broken line is a record and not a piece of one.
            complete: A variant of `kind` that forbids undeclared fields. A record that has some is then decoded again,
                and they are put into its field `others` (R-C11). Other records cost nothing more.
            strict: Whether a number is one only as JSON has it. Otherwise texts of numbers, and floats without a
                fraction for whole numbers, are read too.
        """
        self._kind = kind
        self._strict = strict
        self._decode = msgspec.json.Decoder(kind, strict=strict).decode
        self._known = None if complete is None else LosslessDecoder(kind, complete, strict=strict)
        self._plausible = plausible
        keys = b"|".join(re.escape(key.encode()) for key in first_keys)
        self._start = re.compile(rb'\{\s*"(?:' + keys + rb')"\s*:')

    def read(self, data: bytes, offset: int, number: int, changes: Changes) -> Iterator[Reading[RecordT]]:
        """Yield all records in the lines of `data`, of which the last may lack its newline.

        The first line begins at byte `offset` and has the line number `number` (from 1). `changes.diagnostics` gets
        what could not be read, and `changes.counts` counts it.
        """
        decode = self._decode if self._known is None else self._known.decode
        # Line by line: `split` looks at every byte by itself, and all lines at once are fresh memory.
        find = data.find
        start, size = 0, len(data)
        while start < size:
            end = find(b"\n", start)
            stop = size if end < 0 else end
            # Its place and its JSON are the same with either line end, and before the line end is written.
            rest = stop - 1 if data[stop - 1 : stop] == b"\r" else stop
            # Of a large line alone no copy is made to take off its line end, which is white space to a decoder.
            text = data if start == 0 and size > _LARGE_LINE and stop >= size - 1 else data[start:rest]
            try:
                record = decode(text)
            except UNREADABLE:
                yield from _OddLine(self, text, offset + start, number, changes, torn=end < 0).read()
            else:
                yield record, text, offset + start, rest - start, number
            del text
            start = stop + 1
            number += 1

    def read_into(self, context: LineContext, data: bytes, offset: int, number: int) -> Iterator[RecordT]:
        """Yield the records that `read` yields, each after the context has its place and its JSON."""
        for record, text, position, length, line_number in self.read(data, offset, number, context.changes):
            context.json, context.position, context.length, context.line_number = text, position, length, line_number
            context.report_replaced_bytes()
            yield record

    def starts(self, line: bytes, position: int) -> Iterator[int]:
        """Positions in `line`, from `position` on, where a record may begin."""
        return (match.start() for match in self._start.finditer(line, position))

    def decode(self, text: bytes) -> _Decoded[RecordT] | str:
        """Decode one JSON object, repaired if necessary; otherwise the reason why it is not a record."""
        try:
            return self._typed(text)
        except msgspec.DecodeError as error:
            reason = str(error).removeprefix("JSON is malformed: ")
        except UnicodeDecodeError:
            reason = REPLACED
        except RecursionError:
            return "nested too deep"
        return self._repaired(text) or f"not JSON: {reason}"

    def _typed(self, text: bytes) -> _Decoded[RecordT] | str:
        problems: list[DecodingProblem] = []
        decode = self._decode if self._known is None else self._known.decode
        try:
            return _Decoded(decode(text), text, problems)
        except msgspec.ValidationError:
            record = salvage(text, self._kind, "$", problems, strict=self._strict)
        if not isinstance(record, self._kind):
            return "not a JSON object"
        if self._known is not None:
            record = self._known.with_others(record, text)
        return _Decoded(record, text, problems)

    def _repaired(self, text: bytes) -> _Decoded[RecordT] | None:
        decoded, note = _decode_text(text)
        try:
            # Python's own decoder is far slower, but accepts lone surrogates, NaN and bare control characters.
            value = json.loads(decoded, parse_constant=str, strict=False)
            found = self._typed(bytes(to_json(value)))
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return None
        if isinstance(found, str):
            return None
        return found._replace(problems=[DecodingProblem(note or REPAIRED, None, "note"), *found.problems])

    def is_plausible(self, record: RecordT) -> bool:
        """Whether an object found inside a broken line is a record."""
        return self._plausible(record)


class _Decoded(NamedTuple, Generic[RecordT]):
    record: RecordT
    json: bytes
    problems: list[DecodingProblem]


def _decode_text(text: bytes) -> tuple[str, str | None]:
    try:
        return text.decode(), None
    except UnicodeDecodeError:
        return text.decode(errors="replace"), REPLACED


class _OddLine(Generic[RecordT]):
    """A line that is not exactly one valid record."""

    def __init__(
        self,
        reader: JsonLines[RecordT],
        line: bytes,
        position: int,
        number: int,
        changes: Changes,
        *,
        torn: bool,
    ) -> None:
        self._reader = reader
        self._line = line
        self._position = position
        self._number = number
        self._changes = changes
        self._torn = torn

    def read(self) -> Iterator[Reading[RecordT]]:
        start, end = self._trim(0, len(self._line))
        if start == end:
            self._changes.counts.blank += 1
            return
        # Most of these lines are one record with NULs or a byte order mark around it, or with a field of another type.
        whole = self._reader.decode(self._line[start:end])
        if not isinstance(whole, str):
            yield self._accept(whole, start, end)
            return
        yield from self._search(start, end, whole)

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        """Remove white space, NULs and byte order marks from both ends; report anything but white space."""
        body = self._line[start:end]
        leading = _LEADING.match(body)
        left = leading.end() if leading else 0
        right = max(left, len(body.rstrip(_EDGES)))
        for edge_start, edge in ((start, body[:left]), (start + right, body[right:])):
            if b"\x00" in edge:
                self._report(edge_start, edge_start + len(edge), "NUL bytes skipped", "note")
            elif _BOM in edge:
                self._report(edge_start, edge_start + len(edge), "byte order mark skipped", "note")
        return start + left, start + right

    def _search(self, start: int, end: int, reason: str) -> Iterator[Reading[RecordT]]:
        """Find the valid records among broken pieces. Each piece between them becomes a diagnostic."""
        text = self._line.decode("latin-1")
        budget = _SEARCH_LIMIT * len(text)
        fragment = position = start
        while position < end and budget > 0:
            stop, cost = _object_end(text, position, end)
            budget -= cost
            # A process that is killed leaves half a record, and the next process appends to it without a newline.
            found = self._record_in(position, stop, end) if stop else None
            if found and stop:
                self._give_up(fragment, position, "cut off by another record")
                yield self._accept(found, position, stop)
                # White space and NULs between two records belong to neither.
                fragment = position = self._trim(stop, end)[0]
            else:
                position = next(self._reader.starts(self._line, position + 1), end)
        if fragment < end:
            self._give_up(fragment, end, "cut off at the end of the file" if self._torn else reason)

    def _record_in(self, start: int, stop: int, end: int) -> _Decoded[RecordT] | None:
        following = self._line[stop:end].lstrip(_EDGES)
        # An object that is not followed by another record is nested in the broken record.
        if following and not following.startswith(b"{"):
            return None
        found = self._reader.decode(self._line[start:stop])
        return None if isinstance(found, str) or not self._reader.is_plausible(found.record) else found

    def _accept(self, found: _Decoded[RecordT], start: int, stop: int) -> Reading[RecordT]:
        for problem in found.problems:
            self._report(start, stop, problem.reason, problem.severity, problem.json_path)
        return found.record, found.json, self._position + start, stop - start, self._number

    def _give_up(self, start: int, stop: int, reason: str) -> None:
        if self._line[start:stop].strip(_EDGES):
            self._report(start, stop, reason, "error")
            self._changes.counts.unreadable += 1

    def _report(
        self, start: int, stop: int, reason: str, severity: Literal["error", "note"], json_path: str | None = None
    ) -> None:
        self._changes.diagnostics.append(
            Diagnostic(
                offset=self._position + start,
                length=stop - start,
                reason=reason,
                line=self._number,
                json_path=json_path,
                severity=severity,
            )
        )


_scanner = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)


def _object_end(text: str, start: int, end: int) -> tuple[int | None, int]:
    """The end of the JSON value at `start` (None if it has none), and the number of characters that were read."""
    try:
        _, stop = _scanner.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, max(error.pos - start, 1)
    except (RecursionError, StopIteration):
        return None, end - start
    return stop, stop - start
