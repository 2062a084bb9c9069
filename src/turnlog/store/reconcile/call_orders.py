"""The order of a message's calls, where copies of it number them differently: it is that of the original.

A fork may list the parallel calls of an answer in another order than the session that it came out of. Merged alone,
their readings have a third order. Here the lineage of the sessions decides, as far as it is stored, and the archive
says where a call is in the original's file. So the order of reading does not matter, and no fork moves or repeats the
parts of the original.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, cast

from turnlog.model.merge import OriginalBlocks
from turnlog.store.archive import Archive, RecordReader
from turnlog.store.keys import session_id_of
from turnlog.store.packed_columns import unpack_records
from turnlog.store.reconcile.lineage import Origins


def note_numbered_apart(connection: sqlite3.Connection, message_keys: Iterable[int]) -> None:
    """Remember messages of which two readings have different numbers."""
    connection.executemany("INSERT OR IGNORE INTO call_orders VALUES (?)", [(key,) for key in sorted(message_keys)])


def original_numbers(
    connection: sqlite3.Connection,
    archive: Archive,
    session_ids: Iterable[str],
    call_ids: Callable[[int], list[str]],
) -> Iterator[tuple[str, int, OriginalBlocks]]:
    """(Session, message, what it has in the original) of each message in these sessions whose copies differ.

    `call_ids` returns the ids of the calls in a message. A message of whose records no bytes are archived is left out.
    """
    keys = [row[0] for row in connection.execute("SELECT message_key FROM call_orders ORDER BY message_key")]
    if not keys:
        return
    touched, origins, reader = set(session_ids), Origins(connection), RecordReader(archive)
    for message_key in keys:
        members = origins.of(message_key)
        names = [session_id_of(connection, session_key) for session_key in members]
        if not touched.isdisjoint(names) and (
            original := _blocks(connection, reader, members[0], message_key, call_ids(message_key))
        ):
            yield names[0], message_key, original


def _blocks(
    connection: sqlite3.Connection, reader: RecordReader, session_key: int, message_key: int, call_ids: list[str]
) -> OriginalBlocks | None:
    """What a message has in the file that gives it its place in this session; None if that is not known."""
    source_key, generation, packed = connection.execute(
        "SELECT source_key, generation, records FROM memberships WHERE session_key = ? AND message_key = ?",
        (session_key, message_key),
    ).fetchone()
    if source_key is None:
        return None
    blocks: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for offset, length, what in unpack_records(packed):
        if isinstance(what, int) and length:
            blocks[offset, length].append(what)
    calls: dict[str, int] = {}
    texts_by_block: dict[int, frozenset[str]] = {}
    for (offset, length), numbers in sorted(blocks.items()):
        record = reader.read(source_key, generation, offset, length)
        strings = list(_strings(record))
        found = _calls_in(strings, call_ids)
        # A record of one block is the rule. In one of several, calls come after texts and thoughts.
        for call_id, number in zip(found, sorted(numbers)[len(numbers) - len(found) :], strict=False):
            calls.setdefault(call_id, number)
        # A message that is written again with more text has several records of one block.
        texts = frozenset(text for _, text in strings)
        texts_by_block |= {number: texts_by_block.get(number, frozenset()) | texts for number in numbers}
    return OriginalBlocks(calls, texts_by_block) if texts_by_block else None


def _calls_in(strings: Iterable[tuple[int, str]], call_ids: Iterable[str]) -> list[str]:
    """Those of these calls whose ids are among a record's strings, in its order.

    A call has its id as a field of its own. The input of another call, or a text, may quote it: that is further inside.
    """
    wanted = set(call_ids)
    places: dict[str, tuple[int, int]] = {}
    for number, (depth, text) in enumerate(strings):
        if text in wanted:
            places[text] = min(places.get(text, (depth, number)), (depth, number))
    return sorted(places, key=lambda call_id: places[call_id][1])


def _strings(record: bytes) -> Iterator[tuple[int, str]]:
    """The strings of a record, in its order, and how many objects and lists each is in."""
    waiting: list[tuple[int, Any]] = []
    # What no reader of the record could read has no calls either. Half of a surrogate pair is no error here.
    with suppress(ValueError, RecursionError):
        waiting = [(0, json.loads(record.decode(errors="replace")))]
    while waiting:
        depth, value = waiting.pop()
        if isinstance(value, str):
            yield depth, value
        elif isinstance(value, dict | list):
            items = cast("list[Any]", value if isinstance(value, list) else [*value.values()])
            waiting += [(depth + 1, item) for item in reversed(items)]
