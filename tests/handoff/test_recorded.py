"""What real agents left after they had gone on with sessions that turnlog wrote (`make rig`, tests/data/handoffs).

Each of them resumed the session, answered, ran a command, and was resumed once more.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.handed_over import make_databases, own_messages, said, stored
from turnlog import handoff
from turnlog.agents.handoffs import MARK
from turnlog.handoff import HandoffPlan
from turnlog.model import TextPart, ToolCallPart
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[1] / "data/handoffs"
RECORDINGS = sorted(path.parent for path in DATA.glob("*/*/about.json"))
NAMES = [str(path.relative_to(DATA)) for path in RECORDINGS]

Recording = tuple[Path, dict[str, Any], HandoffPlan, Path]


@pytest.fixture(params=RECORDINGS, ids=NAMES)
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Recording:
    """A recording with its facts, the same hand-over planned today, and a store with the session that it is from."""
    folder: Path = request.param
    about = json.loads((folder / "about.json").read_text())
    (tmp_path / "work").mkdir()
    path, empty = tmp_path / "store.db", tmp_path / "empty"
    make_databases(empty)
    sync(path, roots=[LOGS / about["from"].partition(":")[0]])
    with open_store(path) as store:
        at = datetime.fromisoformat(about["at"])
        planned = handoff.plan(store, about["from"], folder.parts[-2], folder=tmp_path / "work", home=empty, now=at)
    return folder, about, planned, path


def test_turnlog_reads_one_continuation_with_an_equal_history(recording: Recording, tmp_path: Path) -> None:
    folder, about, planned, path = recording
    target = Path(about["path"].replace("{HOME}", str(tmp_path)))
    home = restore(folder, target, tmp_path)
    with open_store(path) as store:
        usage = store.session(about["from"]).usage
    sync(path, roots=[home])
    with open_store(path) as store:
        new = store.session(f"{planned.target.name}:{about['session']}")
        assert [(each.kind, each.parent_session_id) for each in new.relationships] == [("continuation", about["from"])]
        assert stored(store, new.id) == said(planned)
        own = [message for message in own_messages(store, new.id) if message.role != "developer"]
        texts = [part.text.strip('"\n') for message in own for part in message.parts if isinstance(part, TextPart)]
        calls = [part for message in own for part in message.parts if isinstance(part, ToolCallPart)]
        expected = ["Go on with it, please", "I go on.", "Done with that.", "And once more", "Once more, then."]
        assert [text for text in texts if text in expected] == expected
        assert [(call.state, "handed" in call.output_text) for call in calls] == [("output-available", True)]
        # The model was called three times here, and as often as before there.
        assert (new.usage.calls, new.usage.unknown_calls) == (3, 0)
        assert store.session(about["from"]).usage == usage


def test_the_agent_sent_all_that_was_carried_in_order(recording: Recording) -> None:
    _, about, planned, _ = recording
    sent: list[tuple[str, str]] = [(kind, text) for kind, text in about["request"]]
    at = 0
    for kind, text in carried_items(planned):
        later = range(at, len(sent))
        found = next((index for index in later if sent[index][0] == kind and text in sent[index][1]), None)
        assert found is not None, (kind, text)
        at = found if kind == "text" else at


def carried_items(planned: HandoffPlan) -> Iterator[tuple[str, str]]:
    for message in planned.conversation.messages:
        for part in message.parts:
            if isinstance(part, TextPart):
                yield "text", part.text.strip()
            elif isinstance(part, ToolCallPart):
                yield "call", part.tool_name
                yield "result", part.output_text.strip()


def test_what_is_written_today_is_what_the_agent_accepted(recording: Recording, tmp_path: Path) -> None:
    folder, _, planned, _ = recording
    accepted = [line for line in lines_of(folder, tmp_path) if is_carried(line)]
    planned.write()
    target = planned.paths[-1]
    written = rows_in(target, planned) if target.suffix == ".db" else target.read_text().splitlines()
    assert [plain(line) for line in written] == [plain(line) for line in accepted]


def is_carried(line: str) -> bool:
    """Whether turnlog wrote a line: it, or what it wraps, has a mark. Of a database, the session's row has none."""
    record = json.loads(line)
    return any(MARK in each for each in (record, record.get("payload", {}), record.get("data", {})))


def lines_of(folder: Path, home: Path) -> list[str]:
    [path] = [each for each in folder.iterdir() if each.suffix == ".jsonl"]
    return path.read_text().replace("{HOME}", str(home)).splitlines()


def restore(folder: Path, target: Path, home: Path) -> Path:
    """Write the recording as the agent left it, and return the agent's home."""
    lines = lines_of(folder, home)
    if target.suffix != ".db":
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(f"{line}\n" for line in lines))
        return next(each for each in target.parents if each.parent == home)
    make_databases(target.parent)
    with closing(sqlite3.connect(target)) as connection, connection:
        for line in lines:
            row = json.loads(line)
            table = row.pop("table")
            values = [json.dumps(value) if isinstance(value, dict) else value for value in row.values()]
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", values)
    return target.parent


def rows_in(database: Path, planned: HandoffPlan) -> list[str]:
    """The rows that were written, as a recording has them."""
    found: list[str] = []
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        for table in ("message", "part"):
            session = planned.new.external_id
            for row in connection.execute(f"SELECT * FROM {table} WHERE session_id = ? ORDER BY id", (session,)):
                data = {"data": json.loads(row["data"])}
                line = json.dumps({"table": table, **dict(row), **data}, ensure_ascii=False, separators=(",", ":"))
                found += [line] if is_carried(line) else []
    return found


_MADE = re.compile(
    r"[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:msg|prt|ses)_[0-9a-zA-Z]{26,32}"
)


def plain(line: str) -> Any:
    """A line as JSON, with ids that are made anew for each session, and Gemini CLI's hash of the folder, numbered."""
    names: dict[str, str] = {}
    return json.loads(_MADE.sub(lambda match: names.setdefault(match[0], f"#{len(names)}"), line))
