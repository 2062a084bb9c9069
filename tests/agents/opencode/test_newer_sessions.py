"""Sessions of OpenCode 2.x (`session_v2`, `session_message`), alone and beside the tables that an upgrade leaves.

The rows are made up after its source: no 2.x is in the npm registry, so none ran.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered
from support.opencode_files import AGENT, Rows, dump, log_of, read, sessions_in, write_database
from turnlog.model import CompactionEvent, Fate, FilePart, InterruptEvent, Message, RecordEvent, ToolCallPart, Usage
from turnlog.store import open_store
from turnlog.sync.syncer import sync

TIME = 1_794_300_000_000
SESSION = "ses_0123456789abHgXq2ZpLmT4vKd"
FORK = "ses_0123456789acYrW8sNbEj6uCfQ"
SECOND_FORK = "ses_0123456789adKm3xVhTz9aGoPe"
MODEL = {"id": "claude-sonnet-4-5", "providerID": "anthropic", "variant": "default"}
TOKENS = {"input": 1000, "output": 100, "reasoning": 20, "cache": {"read": 5, "write": 7}}


def message_id(second: int, end: str = "HgXq2ZpLmT4vKd") -> str:
    return f"msg_{(TIME + second * 1000) * 4096 % 2**48:012x}{end}"


def session(name: str = SESSION, **fields: Any) -> dict[str, Any]:
    """A row of `session_v2`."""
    return {
        "id": name,
        "project_id": "global",
        "parent_id": None,
        "fork_session_id": None,
        "directory": "/home/dev/shop",
        "title": "A session",
        "version": "2.0.12",
        "revert": None,
        "time_created": TIME,
        "time_updated": TIME + 9000,
        "time_archived": None,
        **fields,
    }


def row(second: int, type: str, of: str = SESSION, **fields: Any) -> dict[str, Any]:
    """A row of `session_message`, with the number of the second."""
    at = TIME + second * 1000
    name = fields.pop("id", message_id(second))
    data = {"time": {"created": at, **({"completed": at + 500} if type == "assistant" else {})}, **fields}
    numbered = {"id": name, "session_id": of, "type": type, "seq": second}
    return {**numbered, "time_created": at, "time_updated": at + 500, "data": json.dumps(data)}


def answer(second: int, *content: dict[str, Any], of: str = SESSION, **fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"agent": "build", "model": MODEL, "finish": "stop", "cost": 0.5, "tokens": TOKENS}
    return row(second, "assistant", of, **{**known, "content": list(content), **fields})


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def tool(call: str, name: str, /, **state: Any) -> dict[str, Any]:
    at = {"created": TIME, "ran": TIME + 100, "completed": TIME + 300}
    return {"type": "tool", "id": call, "name": name, "executed": False, "state": state, "time": at}


def newer(*rows: dict[str, Any], sessions: tuple[dict[str, Any], ...] = (), **more: list[dict[str, Any]]) -> Rows:
    return {"session_v2": [*(sessions or (session(),))], "session_message": list(rows), **more}


def older_message(second: int, role: str, text: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows of `message` and `part`."""
    at, name = TIME + second * 1000, message_id(second)
    known = {"role": role, "time": {"created": at, "completed": at + 500}, **fields}
    times = {"time_created": at, "time_updated": at + 500}
    part = {"id": f"prt_{name[4:]}", "message_id": name, "session_id": SESSION, **times}
    return (
        {"id": name, "session_id": SESSION, **times, "data": json.dumps(known)},
        {**part, "data": json.dumps(said(text))},
    )


def older_answer(second: int, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    named = {"modelID": MODEL["id"], "providerID": "anthropic", "finish": "stop", "cost": 0.25}
    return older_message(second, "assistant", text, tokens={**TOKENS, "total": 1132}, **named)


def upgraded(rows: Rows, *messages: tuple[dict[str, Any], dict[str, Any]]) -> Rows:
    """These rows beside those of the tables before 2.0."""
    kept = {name: value for name, value in session().items() if name != "fork_session_id"}
    before = {"session": [kept], "message": [each[0] for each in messages], "part": [each[1] for each in messages]}
    return {**rows, **before}


def write(rows: Rows, root: Path) -> Path:
    """A database without the older tables, unless the rows have them."""
    path = write_database(rows, root / "opencode.db")
    if "session" not in rows:
        with closing(sqlite3.connect(path)) as connection, connection:
            for table in ("session", "message", "part"):
                connection.execute(f"DROP TABLE {table}")
    return path


def gathered(rows: Rows, root: Path) -> Gathered:
    write(rows, root)
    return read(root)


def in_order(found: Gathered, of: str = SESSION) -> list[Message]:
    places = {name: place for (owner, name), place in found.placements.items() if owner == f"opencode:{of}"}
    return [found.messages[name] for name in sorted(places, key=lambda name: places[name].position)]


def texts(found: Gathered, of: str = SESSION) -> list[str]:
    return ["".join(part.text for part in each.parts if part.type == "text") for each in in_order(found, of)]


TALK = (row(1, "user", text="Hi"), answer(2, said("Hello.")), row(3, "user", text="Bye"), answer(4, said("Ciao.")))


def test_a_database_without_the_older_tables_is_read(tmp_path: Path) -> None:
    found = gathered(newer(*TALK), tmp_path)
    assert found.diagnostics == []
    assert texts(found) == ["Hi", "Hello.", "Bye", "Ciao."]
    assert [(m.role, m.origin) for m in in_order(found)][:2] == [("user", "prompt"), ("assistant", None)]
    reply = in_order(found)[1]
    assert reply.usage == Usage(input=1000, output=100, reasoning=20, cache_read=5, cache_write=7)
    assert (reply.cost.amount if reply.cost else None, reply.model) == (Decimal("0.5"), "claude-sonnet-4-5")
    change = found.sessions[f"opencode:{SESSION}"]
    assert (change.titles["generated"], change.cwd, change.agent_version) == ("A session", "/home/dev/shop", "2.0.12")


def test_an_import_knows_such_a_database(tmp_path: Path) -> None:
    path = write(newer(*TALK), tmp_path)
    detected = AGENT.detect(path, path.read_bytes()[:4096])
    assert (detected.agent, detected.version, detected.reason) == ("opencode", "2.0.12", None)


def test_messages_of_both_kinds_of_tables_are_there_once(tmp_path: Path) -> None:
    """The upgrade copies them without what it has no place for, such as a total of tokens."""
    rows = newer(
        row(1, "user", text="Hi"),
        row(1, "synthetic", id=message_id(1, "0000000000synt"), text="What the upgrade took out of it"),
        answer(2, said("Hello."), cost=0.25),
        row(5, "user", text="Bye"),
        answer(6, said("Ciao.")),
    )
    rows["session_message"][1]["seq"] = 0
    found = gathered(upgraded(rows, older_message(1, "user", "Hi"), older_answer(2, "Hello.")), tmp_path)
    assert texts(found) == ["Hi", "Hello.", "Bye", "Ciao."]
    assert [found.placements[f"opencode:{SESSION}", m.id].turn for m in in_order(found)] == [1, 1, 2, 2]
    assert [float(m.cost.amount) for m in in_order(found) if m.cost] == [0.25, 0.5]


def test_a_session_that_was_read_before_an_upgrade_stays_as_it_was(tmp_path: Path) -> None:
    pairs = (older_message(1, "user", "Hi"), older_answer(2, "Hello."))
    before = upgraded({}, *pairs)
    home = tmp_path / "home"
    write(before, home)
    store = tmp_path / "turnlog.db"
    sync(store, roots=[home], agents=[AGENT])
    (home / "opencode.db").unlink()
    copied = (row(1, "user", text="Hi"), answer(2, said("Hello."), cost=0.25))
    write(upgraded(newer(*copied, answer(6, said("More."))), *pairs), home)
    sync(store, roots=[home], agents=[AGENT])
    with open_store(store) as opened:
        (listed,) = opened.sessions().items
        fates = [placed.membership.fate for placed in opened.messages(listed.id)]
    assert listed.usage.calls == 2
    assert fates == [Fate.ACTIVE] * 3


def test_what_was_reverted_after_an_upgrade_is_retracted(tmp_path: Path) -> None:
    """Rows of `message` stay; only an event says that the messages are gone."""
    pairs = [older_message(1, "user", "Hi"), older_answer(2, "Hello."), older_message(3, "user", "Bye")]
    event = {
        "id": f"evt_{message_id(8)[4:]}",
        "aggregate_id": SESSION,
        "seq": 9,
        "created": TIME + 8000,
        "type": "session.revert.committed.1",
        "data": json.dumps({"sessionID": SESSION, "to": message_id(2)}),
    }
    rows = newer(row(1, "user", text="Hi"), row(8, "user", text="Again"), event=[event])
    found = gathered(upgraded(rows, *pairs), tmp_path)
    fates = [str(found.placements[f"opencode:{SESSION}", m.id].fate) for m in in_order(found)]
    assert list(zip(texts(found), fates, strict=True)) == [
        *(("Hi", "active"), ("Hello.", "retracted"), ("Bye", "retracted"), ("Again", "active")),
    ]


def test_a_revert_that_lasts_hides_the_messages(tmp_path: Path) -> None:
    rows = newer(*TALK, sessions=(session(revert=json.dumps({"messageID": message_id(3)})),))
    assert gathered(rows, tmp_path).sessions[f"opencode:{SESSION}"].active_leaf == message_id(2)


def test_calls_have_all_states(tmp_path: Path) -> None:
    denied = {"type": "permission.rejected", "message": "No"}
    calls = [
        tool("c1", "shell", status="completed", input={"command": "ls"}, content=[said("a.py")], metadata={"exit": 0}),
        tool("c2", "shell", status="completed", input={}, content=[said("no")], metadata={"exit": 2}),
        tool("c3", "edit", status="error", input={}, error={"type": "tool.execution", "message": "not there"}),
        tool("c4", "shell", status="error", input={}, error=denied),
        tool("c5", "shell", status="error", input={}, error={"type": "tool.interrupted", "message": "stopped"}),
        tool("c6", "grep", status="running", input={"pattern": "x"}, metadata={}),
        tool("c7", "write", status="streaming", input='{"path'),
        tool("c8", "read", status="completed", input={}, content=[{"type": "file", "uri": "data:a/b;base64,aGk=",
             "mime": "a/b", "name": "x"}]),
    ]  # fmt: skip
    unfinished = row(2, "assistant", agent="build", model=MODEL, content=calls)
    data = json.loads(unfinished["data"])
    del data["time"]["completed"]
    found = gathered(newer(row(1, "user", text="Hi"), unfinished | {"data": json.dumps(data)}), tmp_path)
    parts = [part for part in in_order(found)[1].parts if isinstance(part, ToolCallPart)]
    assert [str(part.state) for part in parts] == [
        *("output-available", "output-error", "output-error", "output-denied", "aborted"),
        *("input-available", "input-streaming", "output-available"),
    ]
    assert (parts[0].output_text, parts[0].results[0].exit_code, str(parts[0].kind)) == ("a.py", 0, "execute")
    assert parts[6].input_text == '{"path'
    (file,) = parts[7].results[0].content
    assert isinstance(file, FilePart)
    assert file.data == b"hi"


@pytest.mark.parametrize(("tokens", "expected"), [(TOKENS, 1000), (None, None)])
def test_an_answer_of_only_calls_was_the_models(tokens: Any, expected: int | None, tmp_path: Path) -> None:
    """Rows of `message` have a part that says so: without it OpenCode made the call itself."""
    call = tool("c1", "shell", status="completed", input={}, content=[said("a")])
    reply = in_order(gathered(newer(answer(2, call, tokens=tokens)), tmp_path))[0]
    assert (reply.usage.input if reply.usage else None) == expected


def test_an_answer_that_was_stopped_keeps_its_tokens(tmp_path: Path) -> None:
    stopped = answer(2, said("Hel"), finish="error", error={"type": "aborted", "message": "Step interrupted"})
    found = gathered(newer(row(1, "user", text="Hi"), stopped), tmp_path)
    reply = in_order(found)[1]
    assert (reply.stop_reason, reply.usage.input if reply.usage else None) == ("aborted", 1000)
    assert [type(change.event) for change in found.events.values()] == [InterruptEvent]


def test_a_compaction_counts_with_its_tokens(tmp_path: Path) -> None:
    ended = row(3, "compaction", status="completed", reason="auto", summary="They said hi.", recent="",
                model=MODEL, tokens=TOKENS, cost=0.1)  # fmt: skip
    failed = row(4, "compaction", status="failed", reason="manual", error={"type": "unknown", "message": "No"},
                 tokens={**TOKENS, "input": 9})  # fmt: skip
    running = row(5, "compaction", status="running", reason="manual", summary="Th", recent="")
    found = gathered(newer(row(1, "user", text="Hi"), answer(2, said("Hello.")), ended, failed, running), tmp_path)
    events = [change.event for change in found.events.values() if isinstance(change.event, CompactionEvent)]
    assert [event.summary_message_id for event in events] == [message_id(3)]
    calls = {m.id: m for m in found.messages.values() if m.id.endswith(".usage")}
    assert {name: call.usage.input for name, call in calls.items() if call.usage} == {
        f"{message_id(3)}.usage": 1000,
        f"{message_id(4)}.usage": 9,
    }
    assert calls[f"{message_id(3)}.usage"].model == "claude-sonnet-4-5"
    assert found.placements[f"opencode:{SESSION}", f"{message_id(3)}.usage"].fate == Fate.SIDECAR


def test_other_rows(tmp_path: Path) -> None:
    """Files within a prompt, texts of skills, commands of the user, and what is no message."""
    file = {"data": "aGk=", "mime": "text/plain", "name": "a.txt", "source": {"type": "inline"}}
    output = {"output": "a.py\n", "cursor": 5, "size": 5, "truncated": False}
    found = gathered(
        newer(
            row(1, "user", text="Hi", files=[file]),
            row(2, "skill", skill="s", name="s", text="How to paint"),
            row(3, "shell", shellID="sh_1", command="ls", status="exited", exit=0, output=output),
            row(4, "idle", outcome="succeeded"),
            row(5, "location-switched", location={"directory": "/x"}),
            session_inbox=[{"id": message_id(6), "session_id": SESSION, "type": "user", "payload": '{"text":"Wait"}',
                            "time_created": TIME + 6000}],
        ),
        tmp_path,
    )  # fmt: skip
    assert [(m.role, m.origin) for m in in_order(found)] == [
        *(("user", "prompt"), ("developer", "harness"), ("user", "shell")),
    ]
    assert [part.data for part in in_order(found)[0].parts if isinstance(part, FilePart)] == [b"hi"]
    assert texts(found)[2].endswith("ls\na.py")
    records = [change.event for change in found.events.values() if isinstance(change.event, RecordEvent)]
    assert [(record.kind, record.known) for record in records] == [
        *(("session_message", True), ("session_message", True), ("session_inbox", True)),
    ]


def test_reasoning_keeps_what_its_provider_needs(tmp_path: Path) -> None:
    """By the provider's name, or as the provider sent it."""
    thought = {"type": "reasoning", "text": "Hm", "native": {"signature": "s"}, "time": {"created": 1, "completed": 9}}
    named = {"type": "text", "text": "Hello.", "state": {"openai": {"itemId": "i"}}}
    thinking, text = in_order(gathered(newer(answer(2, thought, named)), tmp_path))[0].parts
    assert thinking.type == "reasoning"
    assert (thinking.duration_ms, thinking.provider and thinking.provider.name) == (8, "anthropic")
    assert thinking.provider
    assert thinking.provider.opaque == {"signature": "s"}
    assert text.type == "text"
    assert (text.provider and text.provider.opaque) == {"itemId": "i"}


def test_a_fork_names_its_original_and_each_copy_its_number(tmp_path: Path) -> None:
    """Also the fork of a fork. Copies of one fork have one time in their ids, and more than ten."""
    talk = [row(n, "user", text=f"Prompt {n}") if n % 2 else answer(n, said(f"Answer {n}")) for n in range(1, 13)]

    def copies(of: str, end: str) -> list[dict[str, Any]]:
        return [each | {"session_id": of, "id": f"{message_id(50, end)}_{each['seq']}"} for each in talk]

    first = session(FORK, fork_session_id=SESSION, time_created=TIME + 50_000)
    second = session(SECOND_FORK, fork_session_id=FORK, time_created=TIME + 60_000)
    own = answer(70, said("Own"), of=SECOND_FORK)
    rows = newer(
        *talk,
        *copies(FORK, "YrW8sNbEj6uCfQ"),
        *copies(SECOND_FORK, "Km3xVhTz9aGoPe"),
        own,
        sessions=(session(), first, second),
    )
    found = gathered(rows, tmp_path)
    assert texts(found, FORK) == texts(found)
    assert texts(found, SECOND_FORK) == [*texts(found), "Own"]
    assert len(found.messages) == 13
    links = {(link.parent_session_id, link.child_session_id, link.kind) for link in found.links.values()}
    assert links >= {(f"opencode:{SESSION}", f"opencode:{FORK}", "fork")}
    store = tmp_path / "turnlog.db"
    sync(store, roots=[tmp_path], agents=[AGENT])
    with open_store(store) as opened:
        assert opened.usage("day").totals.calls == 7
        (relation,) = opened.session(f"opencode:{FORK}").relationships
    assert relation.inferred is False


def test_a_subagent_belongs_to_the_call_that_started_it(tmp_path: Path) -> None:
    call = tool("c1", "subagent", status="completed", input={"prompt": "Look"}, content=[said("Done")],
                metadata={"sessionID": FORK, "status": "completed"})  # fmt: skip
    rows = newer(
        row(1, "user", text="Hi"),
        answer(2, call),
        row(3, "user", of=FORK, text="Look"),
        sessions=(session(), session(FORK, parent_id=SESSION)),
    )
    found = gathered(rows, tmp_path)
    links = [
        (link.kind, link.child_session_id, link.tool_call_id) for link in found.links.values() if link.tool_call_id
    ]
    assert links == [("subagent", f"opencode:{FORK}", "c1")]
    assert [m.origin for m in in_order(found, FORK)] == ["subagent_prompt"]


def test_a_row_that_changes_in_place_is_read_again(tmp_path: Path) -> None:
    path = write(newer(*TALK), tmp_path)
    (source,) = sessions_in(tmp_path)
    log = log_of(source)
    assert AGENT.read_rows(source, [log]).lines == []
    with closing(sqlite3.connect(path)) as connection, connection:
        changed = answer(2, said("Hello again."))
        connection.execute(
            "UPDATE session_message SET data = ?, time_updated = ? WHERE id = ?",
            (changed["data"], TIME + 99_000, changed["id"]),
        )
        last = answer(5, said("Late"))
        marks = ",".join("?" * len(last))
        connection.execute(f"INSERT INTO session_message ({','.join(last)}) VALUES ({marks})", tuple(last.values()))
    (again,) = sessions_in(tmp_path)
    assert again.version != source.version
    update = AGENT.read_rows(source, [log])
    assert (len(list(update.lines)), update.anew) == (3, False)  # The answer before the last is over now


def test_rows_are_given_back_to_their_tables(tmp_path: Path) -> None:
    path = write(newer(*TALK), tmp_path)
    (source,) = sessions_in(tmp_path)
    AGENT.restore_rows(source, [log_of(source)], tmp_path / "back")
    back = dict.fromkeys(dump(tmp_path / "back" / "opencode.db"))
    assert list(back) == list(dict.fromkeys(dump(path)))
    assert texts(read(tmp_path / "back")) == ["Hi", "Hello.", "Bye", "Ciao."]


def test_rows_without_a_session_are_reported(tmp_path: Path) -> None:
    write(newer(*TALK, row(9, "user", of="ses_gone", text="Lost")), tmp_path)
    store = tmp_path / "turnlog.db"
    sync(store, roots=[tmp_path], agents=[AGENT])
    with open_store(store) as opened:
        reasons = [each.reason for each in opened.diagnostics().items]
    assert reasons == ["1 row belongs to no session: session_id in session_message names nothing in session_v2"]


def test_a_database_with_only_half_of_the_tables_is_of_another_schema(tmp_path: Path) -> None:
    write({"session_v2": [session()]}, tmp_path)
    assert sessions_in(tmp_path) == []
