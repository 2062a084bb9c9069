"""The rows of messages and parts, as programs write them over HTTP and read them by HTTP, Python and SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.server_history import LONG_TEXT, MAIN, PICTURE
from turnlog.model import FilePart
from turnlog.model.codec import decode_message
from turnlog.model.message import part_ids
from turnlog.store import connect_sql, open_store

SESSION = "/api/sessions/my-bot:1"
CALL = {"type": "tool-call", "tool_call_id": "c1", "tool_name": "Bash", "input": {"command": "ls"}}
EMOJI = "🙂"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


@pytest.fixture
def client(store_path: Path, open_client: Callable[..., TestClient]) -> TestClient:
    client = open_client(store_path)
    assert client.post("/api/sessions", json={"agent": "my-bot", "external_id": "1"}).status_code == 201
    return client


@pytest.fixture
def sql(client: TestClient, store_path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect_sql(store_path)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def write(client: TestClient, *messages: dict[str, Any]) -> int:
    return client.post(f"{SESSION}/messages", json={"messages": messages}).status_code


def new_message(id: str, *parts: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"id": id, "role": role, "parts": parts}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_message_is_a_row(client: TestClient, sql: sqlite3.Connection) -> None:
    """R-S24: id, session, role, position, parts, metadata, time; the time is now if none is sent."""
    answer = new_message("m2", text("b"), CALL) | {"metadata": {"n": 1}, "created_at": "2026-01-01T10:00:00Z"}
    assert write(client, new_message("m1", text("a"), role="user"), answer) == 200
    assert write(client, new_message("m3", role="robot")) == 422
    first, second = sql.execute("SELECT * FROM v_messages WHERE external_id = '1' ORDER BY position").fetchall()
    assert (first["message_id"], first["session_id"], first["role"], first["turn"]) == ("m1", "my-bot:1", "user", 1)
    assert first["position"] < second["position"]
    assert second["created_at"] == "2026-01-01T10:00:00.000Z"
    assert first["created_at"] > "2026-11"
    shown = client.get("/api/messages/m2").json()["message"]
    assert json.loads(second["content"]) == shown
    assert shown["metadata"] == {"n": 1}
    assert [part["type"] for part in shown["parts"]] == ["text", "tool-call"]


@pytest.mark.parametrize("length", [199, 200, 201])
def test_a_row_says_what_a_message_has_and_begins_with(
    client: TestClient, sql: sqlite3.Connection, length: int
) -> None:
    """R-S25, S-g: the first 200 characters, not bytes, of the text parts."""
    words = (EMOJI * 210)[:length]
    reasoning = {"type": "reasoning", "text": "hm"}
    file = {"type": "file", "media_type": "image/png", "url": "https://example.org/a.png"}
    write(
        client,
        new_message("m1", reasoning, text(words), CALL),
        new_message("m2", file, role="user"),
        new_message("m3", text("a")),
    )
    query = "SELECT text_preview, has_tool_calls, has_reasoning, has_files FROM v_messages ORDER BY position"
    rows = [tuple(row) for row in sql.execute(query)]
    assert rows == [(words[:200], 1, 1, 0), ("", 0, 0, 1), ("a", 0, 0, 0)]


def test_a_part_is_a_row(client: TestClient, sql: sqlite3.Connection) -> None:
    """R-S26, R-S28: id, message, sequence, type, content, and of a call its tool, id and state; also as one JSON."""
    done = CALL | {"results": [{"id": "r", "content": [text("out")]}], "state": "output-available"}
    assert (
        write(
            client, new_message("m1", text("a"), CALL), new_message("m2", done | {"tool_call_id": "c2", "id": "look"})
        )
        == 200
    )
    assert write(client, new_message("m3", {"type": "hologram"})) == 422
    columns = "id, message_id, sequence, type, tool_name, tool_call_id, tool_state"
    rows = sql.execute(f"SELECT {columns}, content FROM v_parts ORDER BY message_id, sequence").fetchall()
    assert [tuple(row)[:7] for row in rows] == [
        ("m1.p0", "m1", 0, "text", None, None, None),
        ("m1.p1", "m1", 1, "tool-call", "Bash", "c1", "input-available"),
        ("m2.look", "m2", 0, "tool-call", "Bash", "c2", "output-available"),
    ]
    messages = [client.get(f"/api/messages/{id}").json()["message"] for id in ("m1", "m2")]
    assert [json.loads(row["content"]) for row in rows] == [part for message in messages for part in message["parts"]]
    for row in rows:
        part = client.get(f"/api/parts/{row['id']}").json()
        assert part == {
            "id": row["id"],
            "message_id": row["message_id"],
            "sequence": row["sequence"],
            "part": json.loads(row["content"]),
        }
    (output,) = sql.execute("SELECT content ->> '$.results[0].content[0].text' FROM v_parts WHERE id = 'm2.look'")
    assert tuple(output) == ("out",)


def test_a_part_is_whole(library: Path, open_client: Callable[..., TestClient]) -> None:
    """R-S26: where a message has a preview and a blob, and with the agent's own JSON where its agent is installed."""
    client = open_client(library)
    for id in ("m2", "m4", "m5/odd"):
        answer = client.get(f"/api/messages/{id}").json()["message"]
        for sequence, part_id in enumerate(part_ids(decode_message(json.dumps(answer).encode()))):
            found = client.get(f"/api/parts/{part_id}", params={"session": MAIN}).json()
            assert (found["sequence"], found["part"]["type"]) == (sequence, answer["parts"][sequence]["type"])
    output = client.get("/api/parts/m2.p2").json()["part"]["results"][0]["content"][0]
    assert output == {"type": "text", "text": LONG_TEXT}
    with open_store(library) as store, connect_sql(library) as sql:
        picture = store.part("m4.p0").part
        assert isinstance(picture, FilePart)
        assert picture.data == PICTURE
        query = "SELECT content FROM v_parts WHERE agent = 'plain' AND message_id = 'm2' AND sequence = 2"
        ((content,),) = sql.execute(query).fetchall()
        assert json.loads(content)["results"][0]["content"] == [output]


def test_parts_that_are_not_there(client: TestClient) -> None:
    write(client, new_message("m1", text("a")))
    assert client.get("/api/parts/m1.p1").status_code == 404
    assert client.get("/api/parts/m1").status_code == 404
    assert client.get("/api/parts/m1.p0?session=my-bot:2").status_code == 404


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT id FROM v_parts WHERE tool_name = 'Bash'", "parts_by_tool"),
        ("SELECT id FROM v_parts WHERE tool_call_id = 'c1'", "parts_by_call"),
        ("SELECT id FROM v_parts WHERE path = '/a'", "parts_by_path"),
        ("SELECT id FROM v_parts WHERE agent = 'a' AND message_id = 'm'", "messages"),
        ("SELECT message_id FROM v_messages WHERE role = 'system'", "messages_by_role"),
        ("SELECT message_id FROM v_messages WHERE agent = 'a' AND external_id = 'b'", "sessions_by_id"),
        ("SELECT message_id FROM v_run_messages WHERE run_id = 'r'", "runs"),
    ],
)
def test_questions_use_an_index(sql: sqlite3.Connection, query: str, index: str) -> None:
    """R-S27: by session, run, role, tool; nothing is scanned."""
    plan = [row["detail"] for row in sql.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert [step for step in plan if step.startswith("SCAN")] == []
    assert any(index in step for step in plan), plan


def test_nothing_can_be_written_in_sql(client: TestClient, sql: sqlite3.Connection) -> None:
    for statement in ("DELETE FROM messages", "DELETE FROM v_messages", "CREATE TABLE main.mine (a)"):
        with pytest.raises(sqlite3.OperationalError):
            sql.execute(statement)


def test_what_is_written_is_in_sql_at_once(client: TestClient, sql: sqlite3.Connection) -> None:
    """A connection that is open sees a message as it is now, though it keeps the last one that it read."""
    for words in ("one", "two"):
        write(client, new_message("m1", text(words)))
        assert sql.execute("SELECT content ->> '$.text' FROM v_parts").fetchone()[0] == words


def test_a_deleted_session_takes_its_messages_and_parts_along(client: TestClient, sql: sqlite3.Connection) -> None:
    """R-S29: by Python, HTTP and SQL."""
    write(client, new_message("m1", text("a"), CALL))
    client.post("/api/sessions", json={"agent": "my-bot", "external_id": "2"})
    client.post("/api/sessions/my-bot:2/messages", json={"messages": [new_message("n1", text("b"))]})
    assert client.delete(SESSION).status_code == 204
    for address in (SESSION, "/api/messages/m1", "/api/parts/m1.p0"):
        assert client.get(address).status_code == 404
    assert client.get("/api/tool-calls", params={"call": "c1"}).json()["items"] == []
    assert [row["message_id"] for row in sql.execute("SELECT message_id FROM v_messages")] == ["n1"]
    assert [row["id"] for row in sql.execute("SELECT id FROM v_parts")] == ["n1.p0"]
