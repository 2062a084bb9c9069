from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.agents.changes import Link
from turnlog.errors import NotFoundError
from turnlog.model import (
    Cost,
    Message,
    Origin,
    Project,
    Relationship,
    TextPart,
    ToolCallPart,
    ToolState,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.choices import SESSION_SORTS, SessionSort
from turnlog.store.names import check_project, find_project
from turnlog.store.sqlite.reading import Connections
from turnlog.store.values import Annotations, SessionPreview


def prompt(id: str, minute: float, text: str = "do it") -> Message:
    return Message(id=id, role="user", origin=Origin.PROMPT, created_at=at(minute), parts=(TextPart(text=text),))


def answer(id: str, minute: float, *, model: str = "large", usage: Usage | None = None) -> Message:
    return Message(id=id, role="assistant", model=model, created_at=at(minute), usage=usage)


def statements_of(store: Store, ask: object) -> list[str]:
    """The statements that a question runs, with their parameters."""
    assert isinstance(store, Connections)
    assert callable(ask)
    seen: list[str] = []
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    connection.set_trace_callback(seen.append)
    ask()
    connection.set_trace_callback(None)
    return [statement for statement in seen if statement.startswith(("SELECT", "WITH"))]


def plan_of(store: Store, statement: str) -> str:
    assert isinstance(store, Connections)
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three sessions in two projects, one with a subagent, one forked, one that says nothing of itself."""
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    shop.session(cwd="/w/shop/web", project_path="/w/shop", git_branch="main", titles={"prompt": "Mend the till"})
    shop.message(prompt("s1", 0), turn=1)
    shop.message(answer("s2", 1, usage=Usage(input=100, cache_read=20, output=30)), turn=1, step=1)
    shop.message(answer("s3", 2, model="secret", usage=Usage(input=5, output=5)), turn=1, step=2)
    shop.message(answer("s4", 3), turn=1, step=3)
    shop.line(b"{broken")
    child = Log(home, "shop.scout")
    child.link(Link(kind="subagent", parent_session_id="plain:shop", child_session_id="plain:shop.scout"))
    child.message(prompt("c1", 1.5))
    fork = Log(home, "fork")
    fork.session(project_path="/w/shop", titles={"custom": "Straße 2"}, git_branch="try", first_at=at(-9))
    fork.link(Link(kind="fork", parent_session_id="plain:shop", child_session_id="plain:fork"))
    fork.message(prompt("s1", 0), turn=1, copied=True)
    fork.message(answer("f2", 60, usage=Usage(input=1000, output=1)), turn=1, step=1)
    Log(home, "bare").message(Message(id="b1", role="user"))
    store = tmp_path / "turnlog.db"
    read_home(store, home)
    return store


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


def ids(store: Store, wanted: SessionFilter, sort: SessionSort = "updated") -> list[str]:
    return [session.external_id for session in store.sessions(wanted, sort=sort).items]


def test_sessions_come_newest_first_without_subagents(store: Store) -> None:
    """R-C15, R-C12."""
    page = store.sessions(count=True)
    assert [session.id for session in page.items] == ["plain:fork", "plain:shop", "plain:bare"]
    assert (page.next_cursor, page.total) == (None, 3)
    assert ids(store, SessionFilter(subagents=True)) == ["fork", "shop", "shop.scout", "bare"]


@pytest.mark.parametrize(
    "wanted",
    [
        SessionFilter(),
        SessionFilter(subagents=True),
        SessionFilter(native=True),
        SessionFilter(archived=False),
        SessionFilter(project="/w/shop", subagents=True),
        SessionFilter(since=at(0)),
    ],
)
def test_sessions_that_no_list_shows_are_not_counted(path: Path, wanted: SessionFilter) -> None:
    hidden = (
        "messages = 0, events = 1, created_at = NULL, cwd = NULL, title = NULL WHERE external_id = 'fork'",
        "messages = 0 WHERE external_id = 'shop.scout'",
        "messages = 0, native = 1 WHERE external_id = 'shop'",
    )
    totals: list[int | None] = []
    superseded = (
        "INSERT OR IGNORE INTO superseded (session_key, position, message_key) SELECT key, 0, key FROM sessions"
    )
    with closing(sqlite3.connect(path)) as connection, open_store(path) as store:
        store.annotate(store.sessions().items[0].id, archived=True)
        for change in ("messages = messages", *hidden):
            with connection:
                connection.execute(f"UPDATE sessions SET {change}")
                connection.execute(superseded)
            shown = store.sessions(wanted, count=True)
            assert shown.total == len(shown.items)
            totals.append(shown.total)
    assert totals[-1] != totals[0]


def test_a_session_says_what_is_known_of_it(store: Store) -> None:
    """R-C6, R-S41: what is not known is None, and sums say what they leave out."""
    session = store.session("plain:shop")
    assert (session.agent, session.external_id, session.title, session.title_source) == (
        "plain",
        "shop",
        "Mend the till",
        "prompt",
    )
    assert session.project == Project(path="/w/shop", name="shop")
    assert (session.cwd, session.git_branch, session.git_commit) == ("/w/shop/web", "main", None)
    assert (session.created_at, session.updated_at) == (at(0), at(3))
    assert session.models == ("large", "secret")
    counts = session.counts
    assert (counts.messages, counts.prompts, counts.turns, counts.steps, counts.diagnostics) == (4, 1, 1, 3, 1)
    assert (session.usage.calls, session.usage.unknown_calls) == (3, 1)
    assert (session.usage.usage.input, session.usage.usage.cache_read, session.usage.usage.output) == (105, 20, 35)
    assert session.usage.usage.reasoning is None
    assert session.cost == Cost(amount=Decimal("0.15"))
    assert session.unpriced_calls == 2
    assert session.reported_cost is None


def test_nothing_known_is_none_and_not_zero(store: Store) -> None:
    session = store.session("plain:bare")
    assert (session.title, session.cwd, session.project, session.created_at, session.updated_at) == (None,) * 5
    assert (session.cost, session.usage.usage.input, session.models) == (None, None, ())


def test_a_copied_history_counts_its_messages_and_bills_its_own(store: Store) -> None:
    session = store.session("plain:fork")
    assert (session.counts.messages, session.usage.calls, session.usage.usage.input) == (2, 1, 1000)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (SessionFilter(agent="plain"), ["fork", "shop", "bare"]),
        (SessionFilter(agent="other"), []),
        (SessionFilter(project="/w/shop"), ["fork", "shop"]),
        (SessionFilter(project="shop"), ["fork", "shop"]),
        (SessionFilter(model="secret"), ["shop"]),
        (SessionFilter(branch="try"), ["fork"]),
        (SessionFilter(title="MEND"), ["shop"]),
        (SessionFilter(title="STRASSE"), ["fork"]),
        (SessionFilter(title="100%"), []),
        (SessionFilter(relationship="subagent"), ["shop.scout"]),
        (SessionFilter(relationship="fork"), ["fork"]),
        (SessionFilter(parent="plain:shop"), ["fork", "shop.scout"]),
        (SessionFilter(since=at(10)), ["fork"]),
        (SessionFilter(until=at(10)), ["fork", "shop"]),
        (SessionFilter(since=at(2.5), until=at(2.6)), ["fork", "shop"]),
        (SessionFilter(until=at(0)), ["fork"]),
        (SessionFilter(until=at(-9)), []),
        (SessionFilter(agent="plain", project="shop", branch="main"), ["shop"]),
    ],
)
def test_filters(store: Store, wanted: SessionFilter, found: list[str]) -> None:
    assert ids(store, wanted) == found


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="time zone"):
        store.sessions(SessionFilter(since=datetime(2026, 1, 1)))  # noqa: DTZ001  # naive on purpose


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("updated", ["fork", "shop", "bare"]),
        ("created", ["shop", "fork", "bare"]),
        ("cost", ["fork", "shop", "bare"]),
        ("tokens", ["fork", "shop", "bare"]),
        ("messages", ["shop", "fork", "bare"]),
    ],
)
def test_sorts_put_the_unknown_last(store: Store, sort: SessionSort, order: list[str]) -> None:
    assert ids(store, SessionFilter(), sort) == order


@pytest.mark.parametrize("sort", SESSION_SORTS)
def test_pages_hold_every_session_once_in_order(tmp_path: Path, sort: SessionSort) -> None:
    """R-C15: also where many have one value, and where it is unknown."""
    path = many_sessions(tmp_path)
    with open_store(path) as store:
        whole = [session.id for session in store.sessions(sort=sort, limit=100).items]
        assert len(whole) == 23
        pages: list[str] = []
        cursor: str | None = None
        while True:
            page = store.sessions(sort=sort, limit=4, cursor=cursor)
            pages += [session.id for session in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
            assert len(page.items) == 4
        assert pages == whole


def many_sessions(folder: Path) -> Path:
    home = folder / "many"
    home.mkdir()
    for number in range(23):
        log = Log(home, f"n{number:02}")
        minute = number % 3
        message = answer(f"m{number}", minute, usage=Usage(input=number % 4, output=1))
        log.message(message if number % 5 else Message(id=f"m{number}", role="user"))
    read_home(folder / "many.db", home)
    return folder / "many.db"


def test_a_page_stays_good_while_sessions_are_added(tmp_path: Path) -> None:
    path = many_sessions(tmp_path)
    with open_store(path) as store:
        first = store.sessions(limit=10)
        log = Log(tmp_path / "many", "newest")
        log.message(prompt("newest", 1000))
        read_home(path, tmp_path / "many")
        second = store.sessions(limit=100, cursor=first.next_cursor)
        seen = [session.id for session in (*first.items, *second.items)]
        assert len(seen) == len(set(seen)) == 23
        assert store.sessions(limit=1).items[0].id == "plain:newest"


@pytest.mark.parametrize("cursor", ["x", "!!", "W10", "WyJ1cGRhdGVkIl0"])
def test_what_is_no_cursor_of_the_list_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        store.sessions(cursor=cursor)


def test_a_cursor_of_another_sort_is_refused(tmp_path: Path) -> None:
    with open_store(many_sessions(tmp_path)) as store:
        cursor = store.sessions(sort="cost", limit=2).next_cursor
        with pytest.raises(ValueError, match="not a cursor of this list"):
            store.sessions(sort="updated", cursor=cursor)


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (SessionFilter(), "sessions_by_update"),
        (SessionFilter(project="shop"), "sessions_by_project"),
        (SessionFilter(parent="plain:shop"), "sessions_by_parent"),
        (SessionFilter(team="red"), "sessions_by_task"),
    ],
)
def test_lists_walk_an_index(store: Store, wanted: SessionFilter, index: str) -> None:
    """R-C12: neither a list nor a look-up reads all sessions."""
    page = next(
        text for text in statements_of(store, lambda: store.sessions(wanted)) if "ORDER BY s.updated_at" in text
    )
    assert index in plan_of(store, page)


def test_a_session_is_found_by_its_ids_without_reading_all(store: Store) -> None:
    """R-C12."""
    questions = (
        lambda: store.session("plain:shop"),
        lambda: store.find_session("plain", "shop"),
        lambda: store.children("plain:shop"),
        lambda: store.message("s1"),
    )
    for ask in questions:
        for statement in statements_of(store, ask):
            assert not re.search(r"SCAN (s|m|sessions|messages)\b(?! USING COVERING)", plan_of(store, statement))


def test_equal_ids_of_two_agents_do_not_collide(path: Path) -> None:
    """R-C13."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("INSERT INTO sessions (agent, external_id, title) VALUES ('other', 'shop', 'Not the same')")
    connection.close()
    with open_store(path) as store:
        assert store.session("other:shop").title == "Not the same"
        found = store.find_session("plain", "shop")
        assert found is not None
        assert found.id == "plain:shop"


def test_relatives(store: Store) -> None:
    """R-C10."""
    assert [child.external_id for child in store.children("plain:shop")] == ["fork", "shop.scout"]
    subagent = Relationship(kind="subagent", parent_session_id="plain:shop")
    assert store.session("plain:shop.scout").relationships == (subagent,)
    links = {(link.child_session_id, link.relationship.kind) for link in store.relationships("plain:shop")}
    assert links == {("plain:shop.scout", "subagent"), ("plain:fork", "fork")}
    assert [link.relationship.kind for link in store.relationships("plain:fork")] == ["fork"]


def test_an_unknown_session_is_an_error(store: Store) -> None:
    questions = [
        store.session,
        store.children,
        store.relationships,
        store.messages,
        store.history,
        store.events,
        store.window,
        store.outline,
        store.sources,
    ]
    for ask in questions:
        with pytest.raises(NotFoundError, match="plain:none"):
            ask("plain:none")
    assert store.find_session("plain", "none") is None
    with pytest.raises(NotFoundError):
        store.sessions(SessionFilter(parent="plain:none"))


def test_a_failed_call_is_counted_by_how_it_ended(tmp_path: Path) -> None:
    """R-S41."""
    home = tmp_path / "home"
    home.mkdir()
    states = (ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR, ToolState.INPUT_AVAILABLE)
    parts = tuple(
        ToolCallPart(id=f"m.{number}", tool_call_id=f"t{number}", tool_name="Bash", state=state)
        for number, state in enumerate(states)
    )
    Log(home, "one").message(Message(id="m", role="assistant", parts=parts))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as store:
        counts = store.session("plain:one").counts
        assert (counts.tool_calls, counts.failed_tool_calls) == (3, 1)


def test_what_the_user_says_of_sessions(store: Store) -> None:
    """A given title wins over every other, and stars, tags and the archive can be requested."""
    assert store.annotations(["plain:shop"]) == {}
    before = store.status().change_sequence
    annotated = store.annotate("plain:shop", title="Till", starred=True, tags=("work", "work", "später"), note="!")
    assert replace(annotated, changed_at=None) == Annotations("Till", True, False, ("work", "später"), "!")
    assert store.annotations(["plain:fork", "plain:shop"]) == {"plain:shop": annotated}
    session = store.session("plain:shop")
    assert (session.title, session.title_source) == ("Till", "user")
    assert ids(store, SessionFilter(starred=True)) == ["shop"]
    assert ids(store, SessionFilter(starred=False)) == ["fork", "bare"]
    assert ids(store, SessionFilter(tag="später")) == ["shop"]
    assert ids(store, SessionFilter(archived=False, title="till")) == ["shop"]
    assert [change.session_id for change in store.changes(before)] == ["plain:shop"]

    archived = store.annotate("plain:shop", archived=True)
    assert replace(archived, changed_at=None) == Annotations("Till", True, True, ("work", "später"), "!")
    emptied = store.annotate("plain:shop", title=None, starred=False, archived=False, tags=(), note="")
    assert replace(emptied, changed_at=None) == Annotations()
    assert store.session("plain:shop").title == "Mend the till"


def test_a_pinned_message_is_a_landmark_of_its_session(store: Store) -> None:
    pinned = store.annotate("plain:fork", pins=("f2", "s1", "f2"))
    assert pinned.pins == ("f2", "s1")
    pins = [
        (entry.position, entry.message_id, entry.turn) for entry in store.outline("plain:fork") if entry.kind == "pin"
    ]
    assert [(message_id, turn) for _, message_id, turn in pins] == [("s1", 1), ("f2", 1)]
    assert [entry for entry in store.outline("plain:shop") if entry.kind == "pin"] == []
    with pytest.raises(NotFoundError, match="contains no message s2"):
        store.annotate("plain:fork", pins=("f2", "s2"))
    assert store.annotate("plain:fork", title="Try").pins == ("f2", "s1")
    assert store.annotate("plain:fork", pins=()).pins == ()


def test_an_unknown_session_cannot_be_annotated(store: Store) -> None:
    before = store.status().change_sequence
    with pytest.raises(NotFoundError):
        store.annotate("plain:none", starred=True)
    assert store.status().change_sequence == before


def test_a_preview_has_the_first_prompt_and_counts_of_results(store: Store) -> None:
    previews = store.previews(["plain:shop", "plain:shop.scout", "plain:bare", "plain:nowhere"])
    assert previews == {
        "plain:shop": SessionPreview(
            first_prompt="do it",
            children=2,
            cost_with_subagents=Cost(amount=Decimal("0.15")),
            unpriced_with_subagents=2,
            active_ms=180_000,
        ),
        "plain:shop.scout": SessionPreview(first_prompt="do it", children=0),
        "plain:bare": SessionPreview(first_prompt=None, children=0),
    }


def test_previews_of_a_page_are_looked_up_by_index(store: Store) -> None:
    statements = statements_of(store, lambda: store.previews(["plain:shop", "plain:fork"]))
    assert len(statements) == 2
    for statement in statements:
        plan = plan_of(store, statement)
        assert not [line for line in plan.splitlines() if line.startswith(("SCAN s", "SCAN c", "SCAN x"))]
        assert "sessions_by_parent" in plan


def test_a_branch_is_also_a_worktree_and_that_of_a_fork(tmp_path: Path) -> None:
    home = tmp_path / "branches"
    home.mkdir()
    facts = {
        "on": {"project_path": "/w/shop", "git_branch": "fix-till"},
        "tree": {"project_path": "/w/shop/.claude/worktrees/fix-till", "git_branch": "worktree-fix-till"},
        "fork": {"project_path": "/w/shop"},
        "again": {"project_path": "/w/shop"},
        "moved": {"project_path": "/w/shop", "git_branch": "main"},
        "later": {"project_path": "/w/shop"},
    }
    parents = {"fork": "on", "again": "fork", "moved": "on", "later": "moved"}
    for name, known in facts.items():
        log = Log(home, name)
        log.session(**known)
        log.message(Message(id=f"{name}1", role="user", created_at=at(0), parts=(TextPart(text="Mend it"),)))
        if name in parents:
            log.link(Link(kind="fork", parent_session_id=f"plain:{parents[name]}", child_session_id=f"plain:{name}"))
    read_home(tmp_path / "branches.db", home)
    with open_store(tmp_path / "branches.db") as opened:
        assert {*ids(opened, SessionFilter(branch="fix-till"))} == {"on", "tree", "fork", "again"}
        assert {*ids(opened, SessionFilter(branch="main"))} == {"moved", "later"}


def test_the_folder_of_a_worktree_names_the_project_of_its_repository(tmp_path: Path) -> None:
    home, repository, elsewhere = tmp_path / "home", tmp_path / "shop", tmp_path / "elsewhere"
    home.mkdir()
    for folder in (repository / ".git/worktrees/fix", elsewhere):
        folder.mkdir(parents=True)
    (elsewhere / ".git").write_text(f"gitdir: {repository}/.git/worktrees/fix\n")
    log = Log(home, "main")
    log.session(project_path=str(repository))
    log.message(Message(id="m1", role="user", created_at=at(0), parts=(TextPart(text="Mend it"),)))
    read_home(tmp_path / "worktrees.db", home)
    with open_store(tmp_path / "worktrees.db") as opened:
        for folder in (repository / ".worktrees/gone", repository / ".claude/worktrees/gone/src", elsewhere):
            assert find_project(opened, str(folder)) == str(repository)
        with pytest.raises(NotFoundError):
            find_project(opened, str(tmp_path))


def test_a_renamed_project_is_still_known_by_its_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("shop", "shopping", "old"):
        log = Log(home, name)
        log.session(project_path=f"/w/{name}")
        log.message(Message(id=f"{name}1", role="user", created_at=at(0), parts=(TextPart(text="Mend it"),)))
    read_home(tmp_path / "renamed.db", home)
    with open_store(tmp_path / "renamed.db") as opened:
        opened.rename_project("/w/shop", "Web shop")
        opened.merge_projects("/w/old", "/w/shop")
        assert {find_project(opened, text) for text in ("shop", "old")} == {"/w/shop"}
        assert {find_project(opened, text) for text in ("Web", "web sh")} == {"Web shop"}
        assert find_project(opened, "SHOPP") == "shopping"


def test_a_project_that_only_subagents_worked_in_is_no_unknown_name(tmp_path: Path) -> None:
    """Reports of usage have a row of it, and a row can be asked for."""
    home = tmp_path / "subagents"
    home.mkdir()
    logs = {name: Log(home, name) for name in ("main", "main.scout")}
    for name, path in {"main": "/w/shop", "main.scout": "/w/lib"}.items():
        logs[name].session(project_path=path)
        logs[name].message(Message(id=f"{name}1", role="user", created_at=at(0), parts=(TextPart(text="Mend it"),)))
    logs["main.scout"].link(Link(kind="subagent", parent_session_id="plain:main", child_session_id="plain:main.scout"))
    read_home(tmp_path / "subagents.db", home)
    with open_store(tmp_path / "subagents.db") as opened:
        for text in ("lib", "/w/lib"):
            assert find_project(opened, text) == text
            check_project(opened, text)
        for check in (find_project, check_project):
            with pytest.raises(NotFoundError, match="there is no project 'nowhere'"):
                check(opened, "nowhere")
