"""Times and numbers in logs that no clock can show: they never stop a log from being read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

import turnlog
from support.agent_cases import CASES, has_lines, names, one_per_package
from support.plain_store import PRICE_VERSION, price
from support.profiles import some_of
from turnlog.agents import agent
from turnlog.agents.base import Agent, Source, SourceKind, reads_rows
from turnlog.agents.changes import Changes
from turnlog.store import open_store
from turnlog.store.connection import connect, write_transaction
from turnlog.store.writing.batch import Batch
from turnlog.store.writing.transaction import SourceRow

SAMPLE = Path(turnlog.__file__).parent / "sample"
VALUES = (1 << 70, -(1 << 70), 1 << 63, 1e308, "9999-12-31T23:59:59.999-14:00")
TIME = re.compile(r"(?i)time|stamp|created|updated|completed|start|end|duration|(^|_)(at|ms|s|ts)$|position|turn|step")


def logs(of: Agent) -> Iterator[tuple[Source, bytes]]:
    """The logs of an agent in the sample; of rows, their lines as the archive has them; of a file of JSON, one line."""
    for source in of.find_sources(SAMPLE / of.name):
        if reads_rows(of, source):
            yield source, b"".join(of.read_rows(source, []).lines)
        elif source.kind in (SourceKind.SESSION, SourceKind.SUBAGENT) and source.appendable:
            yield source, Path(source.path).read_bytes()
        elif source.kind is SourceKind.SESSION and not has_lines(of.name):
            yield source, json.dumps(json.loads(Path(source.path).read_bytes())).encode() + b"\n"


def opened(value: Any) -> Any:
    """A text that is JSON, as the values in it."""
    try:
        return json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    except ValueError:
        return value


def times(value: Any) -> Iterator[str]:
    """The names of fields that hold times or numbers that are made of them."""
    value = opened(value)
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            if TIME.search(name) and isinstance(inner, int | float | str) and not isinstance(inner, bool):
                yield name
            yield from times(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from times(inner)


def put(value: Any, name: str, new: Any) -> Any:
    """The value with another in each field of this name."""
    found = opened(value)
    if isinstance(found, list):
        return [put(inner, name, new) for inner in cast("list[Any]", found)]
    if not isinstance(found, dict):
        return value
    fields = cast("dict[str, Any]", found).items()
    changed = {
        key: new if key == name and not isinstance(inner, dict | list) else put(inner, name, new)
        for key, inner in fields
    }
    return json.dumps(changed) if isinstance(value, str) else changed


def save(of: Agent, source: Source, logs: Iterable[bytes], path: Path) -> list[Changes]:
    """Read some versions of a log, and write them all to one store, each in a transaction of its own."""
    found: list[Changes] = []
    with closing(connect(path, checked=False)) as connection:
        for data in logs:
            changes = of.fold(source).feed(data, 0)
            with write_transaction(connection):
                batch = Batch(connection, price, PRICE_VERSION)
                batch.save(SourceRow(1, of.name, source.path, 0, source.session_id, source.kind), changes, data, 0)
                batch.close()
            found.append(changes)
    return found


@pytest.mark.parametrize("name", names([case for case in one_per_package() if "lines of JSON" not in case.lacks]))
def test_no_time_in_a_log_is_too_large_to_be_read(name: str, tmp_path: Path) -> None:
    """R-S34: it is reported or left out, and its neighbours are read."""
    of = agent(name)
    source, data = max(logs(of), key=lambda found: len(found[1]))
    records = [json.loads(line) for line in data.splitlines()]
    fields = sorted({field for record in records for field in times(record)})
    # Without times of messages there may be some of the session.
    assert fields or "message times" in CASES[name].lacks
    for field in some_of(fields):
        store = tmp_path / f"{field}.db"
        changed = (
            b"".join(json.dumps(put(record, field, value)).encode() + b"\n" for record in records) for value in VALUES
        )
        save(of, source, changed, store)
        with open_store(store) as found:
            for session in found.sessions().items:
                found.messages(session.id, limit=100)


@pytest.mark.parametrize("field", ["at", "place", "created", "start", "completed"])
@pytest.mark.parametrize("value", [1 << 70, -(1 << 70), 1e308])
def test_a_time_of_opencode_that_is_none_is_reported(field: str, value: float, tmp_path: Path) -> None:
    """R-S34"""
    of = agent("opencode")
    source, data = next(logs(of))
    records = [json.loads(line) for line in data.splitlines()]
    at = {"position": value} if field == "place" else value
    changed = [
        {**record, "place": at} if field == "place" and "place" in record else put(record, field, at)
        for record in records
    ]
    odd = b"".join(json.dumps(record).encode() + b"\n" for record in changed)
    assert not save(of, source, [data], tmp_path / "sound.db")[0].diagnostics
    [changes] = save(of, source, [odd], tmp_path / "odd.db")
    assert {found.severity for found in changes.diagnostics} == {"error"}
