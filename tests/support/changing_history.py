"""A history in which anything may happen: sessions of `plain_agent`, and a store that follows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from support.plain_agent import Log
from support.plain_store import at, price, read_home
from turnlog.model import CompactionEvent, ErrorEvent, Message, Origin, ToolCallPart, ToolKind, ToolState, Usage
from turnlog.model.codec import to_json
from turnlog.store import open_store
from turnlog.store.sqlite.forget import forget_for_good

DAY: Final = 24 * 60
"""Minutes."""


class History:
    """A home and its store, to which anything may happen."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.home = folder / "home"
        self.home.mkdir()
        self.path = folder / "turnlog.db"
        self.written: dict[str, list[Message]] = {}
        for number in range(3):
            self.begin(f"s{number}")
        self.read()

    def read(self, pricer: Any = price) -> None:
        read_home(self.path, self.home, pricer=pricer)

    def begin(self, name: str, copied: tuple[Message, ...] = ()) -> None:
        log = Log(self.home, name)
        folder = self.random.choice(("/w/shop", "/w/site", "/w/tool"))
        log.session(project_path=folder, cwd=folder)
        log.message(
            Message(id=f"p{name}", role="user", origin=Origin.PROMPT, created_at=at(self.random.uniform(0, 30 * DAY)))
        )
        log.event(
            CompactionEvent(id=f"k{name}", created_at=at(5), trigger="auto", tokens_before=self.random.randrange(99))
        )
        log.event(ErrorEvent(id=f"f{name}", created_at=at(7), error_text="Too many requests", status=429))
        self.written[name] = []
        for message in copied:
            log.message(message)
        for _ in range(8):
            self.answer(name)

    def answer(self, name: str) -> None:
        random = self.random
        minute = None if random.random() < 0.05 else random.uniform(0, 30 * DAY)
        message = Message(
            id=f"m{random.getrandbits(48)}",
            role="assistant",
            model=random.choice(("large", "small", "secret", None)),
            created_at=None if minute is None else at(minute),
            usage=None if random.random() < 0.1 else Usage(input=random.randrange(1000), output=random.randrange(99)),
            parts=self.calls(minute),
        )
        Log(self.home, name).message(message)
        self.written[name].append(message)

    def calls(self, minute: float | None) -> tuple[ToolCallPart, ...]:
        random = self.random
        file, command = random.choice(("till.py", "/w/shop/till.py", "x/../till.py")), random.choice(("npm test", "ls"))
        made = (
            ("Edit", ToolKind.EDIT, {"file_path": file}),
            ("Bash", ToolKind.EXECUTE, {"command": command}),
        )
        return tuple(
            ToolCallPart(
                tool_call_id=f"c{random.getrandbits(48)}",
                tool_name=name,
                kind=kind,
                state=random.choice((ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR)),
                input=to_json(input),
                started_at=None if minute is None else at(minute),
            )
            for name, kind, input in made
            if random.random() < 0.5
        )

    # -- what happens

    def goes_on(self) -> None:
        self.answer(self.random.choice(list(self.written)))
        self.read()

    def begins(self) -> None:
        self.begin(f"s{len(self.written)}")
        self.read()

    def is_forked(self) -> None:
        original = self.random.choice(list(self.written))
        self.begin(f"s{len(self.written)}", tuple(self.written[original][:5]))
        self.read()

    def is_said_again(self) -> None:
        name = self.random.choice([name for name, messages in self.written.items() if messages])
        message = self.random.choice(self.written[name])
        Log(self.home, name).message(msgspec.structs.replace(message, usage=Usage(input=5000, output=7)))
        self.read()

    def moves(self) -> None:
        Log(self.home, self.random.choice(list(self.written))).session(project_path=f"/w/{self.random.randrange(4)}")
        self.read()

    def is_rewritten(self) -> None:
        path = next(self.home.rglob(f"{self.random.choice(list(self.written))}.*"))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: max(1, len(lines) // 2)]))
        self.read()

    def is_forgotten(self) -> None:
        with open_store(self.path) as store:
            sessions = store.sessions().items
        if len(sessions) > 2:
            forget_for_good(self.path, self.random.choice(sessions).id)

    def is_merged(self) -> None:
        with open_store(self.path) as store:
            projects = [each.path for each in store.projects()]
            store.rename_project(projects[0], "another name")
            if len(projects) > 1:
                store.merge_projects(*self.random.sample(projects, 2))

    def changes_price(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE usage SET cost = cost * 2 WHERE model_key = 1")

    def changes_owner(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("INSERT OR IGNORE INTO owners (user) VALUES ('ann')")
            connection.execute(
                "UPDATE sessions SET owner_key = (SELECT key FROM owners WHERE user = 'ann') WHERE key % 2 = ?",
                (self.random.randrange(2),),
            )


HAPPENINGS: Final[tuple[Callable[[History], None], ...]] = (
    History.goes_on,
    History.begins,
    History.is_forked,
    History.is_said_again,
    History.moves,
    History.is_rewritten,
    History.is_forgotten,
    History.is_merged,
    History.changes_price,
    History.changes_owner,
)
