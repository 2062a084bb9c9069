"""What `/undo` and the next prompt deleted, as OpenCode's record of what happened tells it.

`undone.jsonl` has the end of a session in the terminal of 1.18.33 where that was done twice, the second time while an
answer was still being written: its prompts, and all events of the messages that are gone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.opencode_files import AGENT, DATA, Row, Rows, read_table_rows, store_contents, write_database
from turnlog.sync.syncer import sync

ROWS = DATA / "1.18.33" / "undone.jsonl"
SESSION = "opencode:ses_dfd164861ffeIisvh9E80uUjvg"


def as_of(rows: Rows, number: int) -> Rows:
    """The rows after the event of this number: what was deleted later is there, as far as it was written by then."""
    events = [row for row in rows["event"] if row["seq"] <= number]
    there: dict[str, dict[str, Row]] = {"message": {}, "part": {}}
    for event in events:
        data = json.loads(event["data"])
        for table, name in (("message", "info"), ("part", "part")):
            if name in data:
                there[table][data[name]["id"]] = _row(data[name], event)
        gone = str(data["messageID"]) if event["type"].startswith("message.removed") else ""
        there["message"].pop(gone, None)
        there["part"] = {key: row for key, row in there["part"].items() if row["message_id"] != gone}
    found: Rows = {table: [*rows[table], *there[table].values()] for table in there}
    sequences = [row | {"seq": number} for row in rows["event_sequence"]]
    return rows | found | {"event": events, "event_sequence": sequences}


def _row(info: Row, event: Row) -> Row:
    ids = {"id": info["id"], "session_id": event["aggregate_id"]}
    ids |= {"message_id": info["messageID"]} if "messageID" in info else {}
    known = {"id", "sessionID", "messageID"}
    data = {name: value for name, value in info.items() if name not in known}
    times = {"time_created": info.get("time", {}).get("created", 0), "time_updated": _made_at(event)}
    return ids | times | {"data": json.dumps(data)}


def _made_at(event: Row) -> int:
    """Unix milliseconds, modulo those in 36 bits: near enough to tell which of two is later."""
    return int(event["id"][4:16], 16) // 4096 + (1795345201063 >> 36 << 36)


def history(store: Path) -> list[Any]:
    """The session with its history, without rewinds: only a sync while it was reverted can have seen those."""
    session, events = store_contents(store)[SESSION]
    return [session, *(event for event in events if event["type"] != "rewind")]


@pytest.mark.parametrize("number", [111, 118, 125, 135, 139, 165, 168, 173])
def test_a_pass_before_the_deletion_leaves_no_trace(tmp_path: Path, number: int) -> None:
    """R-C19: also one that saw an answer half done; tokens, states and times are those of the end."""
    rows = read_table_rows(ROWS)
    stores = [tmp_path / name / "turnlog.db" for name in ("often", "once")]
    for store in stores:
        store.parent.mkdir()
        for moment in (number, 176) if store is stores[0] else (176,):
            (tmp_path / "home" / "opencode.db").unlink(missing_ok=True)
            write_database(as_of(rows, moment), tmp_path / "home" / "opencode.db")
            assert sync(store, roots=[tmp_path / "home"], agents=[AGENT]).problems == []
    often, once = (history(store) for store in stores)
    assert often == once
    fates = [event.get("membership", {}).get("fate") for event in once[1:] if event["type"] == "message"]
    assert fates.count("retracted") == 5


def test_a_fork_holds_what_was_deleted_from_the_original_since(tmp_path: Path) -> None:
    """A copy of a message that only events still tell of is a copy all the same: it is paid for once."""
    rows = as_of(read_table_rows(ROWS), 176)
    gone = as_of(read_table_rows(ROWS), 135)
    (session,) = rows["session"]
    fork = session | {"id": "ses_fork", "time_created": session["time_updated"] + 1, "title": "fork"}
    there = {row["id"] for row in rows["message"]}
    for table, key in (("message", "id"), ("part", "message_id")):
        for row in gone[table]:
            if row[key] not in there:
                ids = {name: f"{row[name]}Copy" for name in ("id", "message_id") if name in row}
                rows[table].append(row | ids | {"session_id": fork["id"]})
    write_database(rows | {"session": [session, fork]}, tmp_path / "home" / "opencode.db")
    store = tmp_path / "turnlog.db"
    sync(store, roots=[tmp_path / "home"], agents=[AGENT])
    (copied, copies), (_, events) = store_contents(store)["opencode:ses_fork"], store_contents(store)[SESSION]
    kept = {event["message"]["id"] for event in events if event["type"] == "message"}
    assert {event["message"]["id"] for event in copies if event["type"] == "message"} <= kept
    assert "calls" not in copied["usage"]
    assert [each["parent_session_id"] for each in copied["relationships"]] == [SESSION]
