"""Both engines answer every question about the same sessions the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_cases import CASES
from support.database_rows import databases_in, opened
from support.plain_agent import Log
from support.plain_store import START, at, read_home
from support.postgres_stores import PostgresDatabases, push
from support.store_answers import Question, ask, some_questions
from turnlog.agents import agent
from turnlog.agents.changes import Link
from turnlog.model import (
    ErrorEvent,
    Message,
    Origin,
    Ownership,
    Role,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store, ToolCallFilter
from turnlog.store.choices import SESSION_SORTS
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.values import AgentAnswer, Page, Run
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data"

FOLDERS = sorted(case for agent in DATA.iterdir() if agent.is_dir() for case in agent.glob("*/*") if case.is_dir())[
    ::10
]
"""Every tenth case of every agent."""

HUGE = (1 << 63) - 1

WRITES = frozenset(
    {
        *("save_session", "save_messages", "save_tool_call", "change_owner", "annotate", "save_run"),
        *("change_unfinished_runs", "forget_run", "forget", "rename_project", "merge_projects", "split_project"),
        *("create_task", "rename_task", "delete_task"),
    }
)
"""Methods that `write` calls, or other tests."""


def write(store: Store) -> None:
    """Sessions of programs, and everything that a user may say about sessions; all with times of their own."""
    store.save_session(
        "demo:a",
        title="Größe \0 of \1 things",
        cwd="/home/dev/proj\0ect",
        created_at=START,
        updated_at=START,
        metadata={"deep": {"nul": "\0", "huge": HUGE}},
        ownership=Ownership(user="ann", team="core", task="t1", machine="laptop"),
    )
    call = ToolCallPart(
        id="a1.1",
        tool_call_id="c1",
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        input_text='{"command":"ls \\ud800"}',
        started_at=at(1),
        results=(ToolResult(id="r1", content=(TextPart(text="out \0 \x01 put"),)),),
    )
    store.save_messages(
        "demo:a",
        [
            text_message("u1", "user", "do \0 it \ud800"),
            Message(
                id="a1",
                role="assistant",
                model="claude-sonnet-4-5",
                usage=Usage(input=HUGE >> 12, output=5, cache_read=7),
                parts=(TextPart(id="a1.0", text="x" * 100_000), call),
                created_at=at(1),
                updated_at=at(1),
            ),
            text_message("u2", "user", "gone again"),
        ],
        answers={"a1": AgentAnswer("claude-code:nobody", "run-1")},
    )
    store.save_messages("demo:a", [text_message("u3", "user", "later", 3)], retracted=["u2"])
    store.save_tool_call(
        "demo:a", "a1", ToolCallPart(id="a1.2", tool_call_id="c2", tool_name="Edit", kind=ToolKind.EDIT)
    )
    # The time of this call is replaced by one that both stores have.
    whole = msgspec.structs.replace(store.message("a1"), updated_at=datetime.max.replace(tzinfo=UTC), metadata={"n": 1})
    store.save_messages("demo:a", [whole])
    store.save_session("demo:ü", title="ÜBERGRÖSSE ẞ", cwd="/home/dev/other", created_at=at(5), updated_at=at(5))
    store.change_owner("demo:ü", Ownership(user="bob"))
    store.annotate("demo:a", title="İstanbul ﬁx", tags=["important", "\0"], note="n\0te", starred=True, pins=["a1"])
    store.rename_project("/home/dev/proj\0ect", "renamed")
    store.merge_projects("/home/dev/other", "renamed")
    for number, status in enumerate(("completed", "running", "failed")):
        store.save_run(
            Run(
                id=f"run-{number}",
                origin="command",
                status=status,
                created_at=at(number),
                ended_at=None if status == "running" else at(number + 1),
                session_id="demo:a",
                command=("claude", "\0"),
                exit_code=-9,
                error="n\0",
                usage=Usage(input=1),
            )
        )


def text_message(id: str, role: Role, text: str, minutes: float = 0) -> Message:
    part = TextPart(id=f"{id}.0", text=text)
    return Message(id=id, role=role, parts=(part,), created_at=at(minutes), updated_at=at(minutes))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in SQLite of recorded sessions of all agents, and of programs."""
    path = tmp_path_factory.mktemp("recorded") / "turnlog.db"
    sync(path, roots=FOLDERS)
    with open_store(path) as store:
        write(store)
    return path


def differences(one: Store, other: Store, questions: Iterable[Question]) -> list[str]:
    """What the stores answer differently."""
    return [str(question) for question in questions if ask(one, question) != ask(other, question)]


@pytest.fixture(scope="module")
def pushed(databases: PostgresDatabases, recorded: Path) -> Iterator[PostgresStore]:
    with databases.store() as store:
        push(recorded, store, most=150)
        yield store


def test_recorded_sessions_are_the_same_on_both_engines(pushed: PostgresStore, recorded: Path) -> None:
    with open_store(recorded) as store:
        assert differences(store, pushed, some_questions(store, every=8, most=12)) == []


def test_recorded_sessions_are_the_same_on_an_older_server(older_databases: PostgresDatabases, recorded: Path) -> None:
    with open_store(recorded) as store, older_databases.store() as other:
        push(recorded, other)
        assert differences(store, other, some_questions(store, every=30, most=3)) == []


def test_every_method_that_reads_is_some_questions(recorded: Path) -> None:
    with open_store(recorded) as store:
        found = {question.method for question in some_questions(store, every=40, most=1)}
    methods = {name for name in vars(Store) if not name.startswith("_") and callable(getattr(Store, name))}
    # `restored` restores; the numbers of the change sequence are an engine's own, and tests of the feed ask for them.
    # Only SQLite keeps where secrets are.
    of_one_engine = {"changes", "last_change", "session_changes", "secret_places", "keep_secret_places"}
    assert methods - WRITES - found == {"close", "restore", *of_one_engine}


def test_rows_of_equal_time_come_in_one_order_whatever_was_written_first(store: PostgresStore, tmp_path: Path) -> None:
    """Keys are an engine's own: each of these stores numbers sessions and messages otherwise."""
    numbers = [3, 1, 2]
    with open_store(tmp_path / "turnlog.db", create=True) as other:
        write_at_once(other, numbers)
        write_at_once(store, numbers[::-1])
        questions = [
            *(Question("sessions", kwargs={"sort": sort, "limit": 1}) for sort in SESSION_SORTS),
            *(Question("tool_calls", (wanted,), {"limit": 1}) for wanted in CALLS_AT_ONCE),
            Question("file_history", ("/w/a.py",), {"limit": 1}),
            Question("insights"),
        ]
        assert differences(other, store, questions) == []
        found = [call.tool_call_id for page in pages(other.tool_calls) for call in page.items]
        # Newest first, also within one time: of a session, of a message.
        assert found == [f"c{number}.{call}" for number in (3, 2, 1) for call in (3, 2, 1, 0)]
        assert len(other.file_history("/w/a.py").touches.items) == 6


def test_what_was_wrong_in_a_deleted_database_is_counted_on_neither_engine(
    store: PostgresStore, tmp_path: Path
) -> None:
    case = CASES["crush"]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    [database] = databases_in(home)
    with opened(database) as (connection, _):
        connection.execute(case.strays[0][0])
    sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(case.name)])
    push(tmp_path / "turnlog.db", store)
    with open_store(tmp_path / "turnlog.db") as other:
        assert other.status().diagnostics == store.status().diagnostics > 0
    database.unlink()
    sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(case.name)])
    push(tmp_path / "turnlog.db", store)
    with open_store(tmp_path / "turnlog.db") as other:
        assert other.status().diagnostics == store.status().diagnostics == 0


def test_a_failed_request_and_forks_of_a_branch_are_found_on_both_engines(store: PostgresStore, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    parents = {"on": None, "fork": "on", "again": "fork"}
    for name, parent in parents.items():
        log = Log(home, name)
        log.session(project_path="/w/shop", git_branch=None if parent else "fix")
        log.message(msgspec.structs.replace(text_message(f"{name}1", "user", "Mend it"), origin=Origin.PROMPT))
        log.event(ErrorEvent(id=f"{name}2", error_text="overloaded", created_at=at(1)))
        if parent:
            log.link(Link(kind="fork", parent_session_id=f"plain:{parent}", child_session_id=f"plain:{name}"))
    read_home(tmp_path / "turnlog.db", home)
    push(tmp_path / "turnlog.db", store)
    with open_store(tmp_path / "turnlog.db") as other:
        for each in (store, other):
            found = [session.id for session in each.sessions(SessionFilter(branch="fix")).items]
            assert {*found} == {"plain:on", "plain:fork", "plain:again"}
            assert all(facts.has_failed for facts in each.turn_facts(found).values())


CALLS_AT_ONCE = (
    *(ToolCallFilter(), ToolCallFilter(tool="Edit"), ToolCallFilter(path="/w/a.py")),
    *(ToolCallFilter(call="c1.0"), ToolCallFilter(agent="demo", failed=False)),
)


def write_at_once(store: Store, numbers: Iterable[int]) -> None:
    """Sessions of one time, each with two messages of two calls. Ids of messages do not grow with their places."""
    for number in numbers:
        id = f"demo:s{number}"
        store.save_session(id, title="same", cwd="/w", created_at=START, updated_at=START)
        store.save_messages(id, [called(f"m{number}.{9 - first}", f"c{number}", first) for first in (0, 2)])


def called(id: str, prefix: str, first: int) -> Message:
    calls = tuple(
        ToolCallPart(
            id=f"{id}.{call}",
            tool_call_id=f"{prefix}.{call}",
            tool_name="Edit" if call % 2 else "Bash",
            kind=ToolKind.EDIT if call % 2 else ToolKind.EXECUTE,
            input=msgspec.Raw(b'{"file_path":"/w/a.py"}' if call % 2 else b'{"command":"ls"}'),
            started_at=START,
            results=(ToolResult(id=f"r{id}.{call}", content=(TextPart(text="done"),), duration_ms=1000),),
        )
        for call in (first, first + 1)
    )
    return Message(id=id, role="assistant", parts=calls, created_at=START, updated_at=START)


def pages(method: Callable[..., Page[Any]]) -> Iterator[Page[Any]]:
    page = method(limit=1)
    yield page
    while page.next_cursor is not None:
        page = method(limit=1, cursor=page.next_cursor)
        yield page


def test_what_programs_write_is_the_same_on_both_engines(store: PostgresStore, tmp_path: Path) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as other:
        write(other)
        write(store)
        # The time of an annotation is that of the call.
        questions = (
            question for question in some_questions(other, every=1, most=5) if question.method != "annotations"
        )
        assert differences(other, store, questions) == []
        assert [entry.session_id for entry in other.changes(0)] == [entry.session_id for entry in store.changes(0)]
        assert other.last_change() == store.last_change()
        question = Question("session_changes", ("demo:a", 0, other.last_change()))
        assert ask(other, question) == ask(store, question)
        one, two = (each.annotations(["demo:a"])["demo:a"] for each in (other, store))
        assert (one.title, one.tags, one.note, one.pins) == (two.title, two.tags, two.note, two.pins)


@pytest.mark.parametrize(
    "question",
    [
        Question("save_session", ("claude-code:x",)),
        Question("save_session", ("no id",)),
        Question("save_messages", ("demo:nobody", [])),
        Question("save_messages", ("demo:b", [text_message("a1", "user", "of demo:a")])),
        Question("save_messages", ("demo:b", [text_message("", "user", "no id")])),
        Question("save_tool_call", ("demo:a", "nobody", ToolCallPart(tool_call_id="c", tool_name="t"))),
        Question("change_owner", ("demo:nobody", Ownership())),
        Question("annotate", ("demo:nobody",), {"title": "x"}),
        Question("annotate", ("demo:a",), {"pins": ["nobody"]}),
        Question("rename_project", ("nobody", "x")),
        Question("merge_projects", ("renamed", "renamed")),
        Question("split_project", ("/home/dev/proj",)),
        Question("forget", ("demo:nobody",)),
        Question("forget_run", ("run-1",)),
        Question("forget_run", ("run-9",)),
        Question("message", ("a1",), {"session_id": "demo:ü"}),
        Question("sessions", kwargs={"limit": 0}),
    ],
    ids=lambda question: question.method,
)
def test_what_is_refused_is_refused_in_the_same_words(question: Question, written: tuple[Store, Store]) -> None:
    one, other = written
    answer = ask(one, question)
    assert isinstance(answer, tuple)
    assert answer == ask(other, question)


@pytest.fixture(scope="module")
def written(databases: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    path = tmp_path_factory.mktemp("written") / "turnlog.db"
    with open_store(path, create=True) as one, databases.store() as other:
        write(one)
        write(other)
        yield one, other


def test_runs_end_and_sessions_are_forgotten_on_both_engines(store: PostgresStore, tmp_path: Path) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as other:
        for each in (other, store):
            write(each)
            ended = each.change_unfinished_runs(lambda run: None if run.is_finished else finished(run))
            assert [run.id for run in ended] == ["run-1"]
            assert each.forget_run("run-0").id == "run-0"
            assert each.split_project("/home/dev/other").path == "/home/dev/other"
        assert other.forget("demo:a") == store.forget("demo:a")
        assert differences(other, store, some_questions(other, every=1, most=5)) == []
        for each in (other, store):
            refused = ask(each, Question("save_session", ("demo:a",)))
            assert refused == ("ForgottenError", "demo:a was forgotten")


def finished(run: Run) -> Run:
    return msgspec.structs.replace(run, status="completed", ended_at=at(9))
