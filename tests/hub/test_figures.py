"""Team figures are sums that every write keeps: whatever happens to sessions, they are what their messages say."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple, get_args

import psycopg
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub
from support.usage_days import days_that_differ
from turnlog.hub.people.figures import Figures, FiguresBy
from turnlog.store.postgres import schema

FIRST: Final = date(2026, 11, 1)
MODELS: Final = ("claude-opus-4-5", "nobody-prices-this", None)
FOLDERS: Final = ("/work/a", "/work/b")


class Answer(NamedTuple):
    """An answer as it was saved last."""

    day: date
    model: str | None
    input: int | None
    output: int


class Session:
    """A session as it was saved last."""

    def __init__(self, client: TestClient, owner: str, name: str, folder: str) -> None:
        self.client, self.owner, self.name = client, owner, name
        self.folder, self.level = folder, "full"
        self.answers: dict[str, Answer] = {}
        answer = client.post("/api/sessions", json={"external_id": name, "cwd": folder})
        assert answer.status_code in (200, 201), answer.text

    def save_answer(self, id: str, saved: Answer) -> None:
        self.answers[id] = saved
        message = {
            "id": id,
            "role": "assistant",
            "model": saved.model,
            "created_at": f"{saved.day}T23:50:00Z",
            "parts": [{"type": "text", "text": "words"}],
            "usage": None if saved.input is None else {"input": saved.input, "output": saved.output},
        }
        answer = self.client.post(f"/api/sessions/turnlog:{self.name}/messages", json={"messages": [message]})
        assert answer.status_code == 200, answer.text


Counted = dict[str | None, tuple[int, ...]]
"""Name -> how many people, sessions, calls, calls without a count, tokens, tokens of output."""


def name_of(by: FiguresBy, session: Session, answer: Answer) -> str | None:
    match by:
        case "person":
            return session.owner
        case "project":
            return None if session.level == "metrics" else session.folder
        case "model":
            return answer.model
        case "day":
            return answer.day.isoformat()


def counted(sessions: list[Session], by: FiguresBy, first: date, last: date) -> Counted:
    """What the figures of these days have to be."""
    groups: dict[str | None, list[tuple[Session, Answer]]] = {}
    for session in sessions:
        for answer in session.answers.values():
            if first <= answer.day < last:
                groups.setdefault(name_of(by, session, answer), []).append((session, answer))
    return {
        name: (
            len({session.owner for session, _ in rows}),
            len({session.name for session, _ in rows}),
            len(rows),
            sum(answer.input is None for _, answer in rows),
            sum((answer.input or 0) + answer.output for _, answer in rows),
            sum(answer.output for _, answer in rows),
        )
        for name, rows in groups.items()
    }


@pytest.fixture
def people(new_hub: Hub) -> list[tuple[TestClient, str]]:
    """Three people's browsers, and their ids."""
    browsers = [new_hub.browser(name) for name in ("Ana", "Ben", "Cid")]
    return list(zip(browsers, new_hub.ids.values(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_the_sums_over_messages_whatever_happens(
    new_hub: Hub, people: list[tuple[TestClient, str]], seed: int
) -> None:
    chance = random.Random(seed)
    figures = Figures(new_hub.database, fresh_seconds=-1)
    sessions: list[Session] = []
    for step in range(40):
        happens(new_hub, people, sessions, chance, step)
        if step % 4 == 3:
            first = FIRST + timedelta(days=chance.randrange(4))
            last = first + timedelta(days=chance.randrange(1, 6))
            for by in get_args(FiguresBy):
                assert shown(figures, by, first, last) == counted(sessions, by, first, last), (step, by, first, last)
                assert shown(figures, by, None, None) == counted(sessions, by, date.min, date.max), (step, by)
    assert days_that_differ(new_hub.url) == []


def happens(
    hub: Hub, people: list[tuple[TestClient, str]], sessions: list[Session], chance: random.Random, step: int
) -> None:
    """Something that changes what was used, or whose it is."""
    if not sessions or (chance.random() < 0.2 and len(sessions) < 8):
        client, owner = chance.choice(people)
        sessions.append(Session(client, owner, f"s{step}", chance.choice(FOLDERS)))
    session = chance.choice(sessions)
    kind = chance.choice(("answer", "answer", "answer", "again", "again", "folder", "level", "owner", "forget"))
    if kind in ("folder", "level", "owner") and len(session.answers) == 0:
        kind = "answer"
    if kind == "answer" or (kind == "again" and not session.answers):
        session.save_answer(f"{session.name}-{step}", answer(chance))
    elif kind == "again":
        session.save_answer(chance.choice(sorted(session.answers)), answer(chance))
    elif kind == "folder":
        # As a push does whose machine knows better to which project a session belongs.
        session.folder = chance.choice([each.folder for each in sessions])
        hub.row(
            "UPDATE turnlog.sessions s SET project_key = p.key, folder_key = p.key, cwd = p.path"
            " FROM turnlog.projects p WHERE p.path = %s AND s.external_id = %s RETURNING 1",
            *(session.folder, session.name),
        )
    elif kind == "level":
        session.level = chance.choice(("metrics", "redacted", "full"))
        changed(hub, session, "level", session.level)
    elif kind == "owner":
        session.client, session.owner = chance.choice(people)
        changed(hub, session, "owner_user", session.owner)
        # Ids of messages are each person's own.
        hub.row(
            "UPDATE turnlog.messages SET owner = %s WHERE external_id LIKE %s RETURNING 1",
            session.owner,
            f"{session.name}-%",
        )
    else:
        sessions.remove(session)
        gone = session.client.post(f"/api/sessions/turnlog:{session.name}/forget", json={"dry_run": False})
        assert gone.status_code == 200, gone.text


def answer(chance: random.Random) -> Answer:
    day = FIRST + timedelta(days=chance.randrange(8))
    if chance.random() < 0.2:
        return Answer(day, chance.choice(MODELS), None, 0)
    return Answer(day, chance.choice(MODELS), chance.randrange(1000), chance.randrange(100))


def changed(hub: Hub, session: Session, column: str, value: str) -> None:
    sql = f"UPDATE turnlog.session_owners SET {column} = %s WHERE session_id = %s RETURNING 1"
    hub.row(sql, value, f"turnlog:{session.name}")


def shown(figures: Figures, by: FiguresBy, first: date | None, last: date | None) -> Counted:
    """Rows of the figures of these days, of which each begins and ends somewhere within its first and last day."""
    since = None if first is None else datetime(first.year, first.month, first.day, 15, tzinfo=UTC)
    end = None if last is None else last - timedelta(days=1)
    until = None if end is None else datetime(end.year, end.month, end.day, 9, tzinfo=UTC)
    if since is not None and until is not None and until <= since:
        until = since + timedelta(hours=1)
    found = figures.usage(1, by, 1, since, until)
    rows = {row.name: row.sums for row in found.rows}
    assert found.folded is None
    if found.totals is not None:
        assert found.totals.calls == sum(each.calls for each in rows.values())
    return {
        name: (each.people, each.sessions or 0, each.calls, each.unknown_calls, each.tokens, each.output)
        for name, each in rows.items()
    }


def test_who_was_removed_and_came_back_as_somebody_new_is_counted_once(new_hub: Hub) -> None:
    """The longer one of two copies counts, if the other is that of somebody who left."""
    olga, ana, ben = new_hub.browser("Olga", "owner"), new_hub.browser("Ana"), new_hub.browser("Ben")
    day = Answer(FIRST, MODELS[0], 10, 1)

    def save(client: TestClient, name: str, answers: int) -> None:
        session = Session(client, "", name, FOLDERS[0])
        for number in range(answers):
            session.save_answer(f"{name}-{number}", day)

    def calls(by: FiguresBy = "person") -> tuple[int, dict[str | None, int]]:
        usage = Figures(new_hub.database).usage(1, by, 1, None, None)
        assert usage.totals is not None
        return usage.totals.calls, {row.name: row.sums.calls for row in usage.rows}

    before = new_hub.ids["Ana"]
    ben_id = new_hub.ids["Ben"]
    for name, answers in (("same", 2), ("longer", 4), ("gone", 8)):
        save(ana, name, answers)
    save(ben, f"same~{ben_id}", 1)
    assert olga.delete(f"/hub/v1/members/{before}").status_code == 204
    # As long as nobody has a copy that is as long, what she used counts.
    assert calls() == (15 - 1, {before: 14})
    again = new_hub.browser("Ana")
    after = new_hub.ids["Ana"]
    for name, answers in (("same", 2), ("longer", 3), ("new", 16)):
        save(again, f"{name}~{after}", answers)
    assert calls() == (2 + 4 + 8 + 16 + 1, {before: 12, after: 18, ben_id: 1})
    assert calls("project")[0] == calls("day")[0] == 31


def test_a_database_of_before_has_the_figures_after_its_migration(
    new_hub: Hub, people: list[tuple[TestClient, str]]
) -> None:
    chance = random.Random(7)
    sessions: list[Session] = []
    for step in range(12):
        happens(new_hub, people, sessions, chance, step)
    script = next(path for path in schema.migrations().values() if path.name.endswith("usage_days.sql"))
    with psycopg.connect(new_hub.url, autocommit=True) as connection:
        rows = connection.execute("SELECT count(*) FROM turnlog.usage_days").fetchone()
        connection.execute("DROP TABLE turnlog.usage_days")
        connection.execute(
            "DROP FUNCTION turnlog.count_days, turnlog.count_touched_days, turnlog.count_updated_days,"
            " turnlog.count_days_of_session CASCADE"
        )
        connection.execute(script.read_bytes())
    assert days_that_differ(new_hub.url) == []
    assert rows is not None
    assert new_hub.row("SELECT count(*) FROM turnlog.usage_days") == rows
    assert rows[0] > 5
