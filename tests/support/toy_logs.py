"""Worlds of toy logs: whole homes of sessions that grow, branch, fork, fail and refer to each other.

`worlds()` is a hypothesis strategy; `make_world(seed)` gives one of a number, for tests that need no strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from hypothesis import strategies as st

from support import toy_agent

World: TypeAlias = dict[str, bytes]
"""Path under the home -> content."""

Fields: TypeAlias = dict[str, Any]

GARBAGE = (
    b"\n",
    b"  \t\n",
    b"\0\0\0\n",
    b"not JSON at all\n",
    b'{"kind":"text","id":"torn","mess\n',
    b'{"kind":7}\n',
    b"\xff\xfe\n",
    b"[1,2]\n",
)

LONG = "a long output " * 6000
"""More than a message body holds: it becomes a blob."""


class Writer:
    """Writes one session's log as an agent would, with all that may go wrong."""

    def __init__(
        self, random: Random, name: str, prefix: list[Fields | bytes] | None = None, *, orderly: bool = False
    ) -> None:
        self.name = name
        self._orderly = orderly
        self.lines: list[Fields | bytes] = list(prefix or ())
        self._random = random
        self._number = 0
        self._records = [str(line["id"]) for line in self.lines if isinstance(line, dict) and line.get("id")]
        self._messages = [str(line["message"]) for line in self.lines if isinstance(line, dict) and "message" in line]
        self._parent = self._records[-1] if self._records else None
        self._pending: list[str] = []

    def write(self, steps: int) -> None:
        """Some steps of a session, chosen at random."""
        actions: list[Callable[[], None]] = [
            *[self._prompt, self._answer] * 3,
            *[self._results] * 2,
            self._rewind,
            self._compact,
            self._leaf,
            *([] if self._orderly else [self._early_result]),
            self._orphan,
            self._resurface,
            self._facts,
            self._title,
            self._unknown,
            self._garbage,
            self._interrupt,
        ]
        self._prompt()
        for _ in range(steps):
            self._random.choice(actions)()

    def _id(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}-{self.name}"

    def _at(self) -> float:
        return len(self.lines) + self._random.choice([0, 0, 0.25, 1440])

    def _add(self, kind: str, **fields: Any) -> str:
        """A record under the newest one."""
        record = self._id("r")
        self.lines.append({"kind": kind, "id": record, "parent": self._parent, "at": self._at(), **fields})
        self._records.append(record)
        self._parent = record
        return record

    def _prompt(self) -> None:
        message = self._id("m")
        self._messages.append(message)
        facts: Fields = {"cwd": f"/src/{self.name}", "branch": "main"} if self._random.random() < 0.5 else {}
        self._add("prompt", message=message, text=f"please {self._number} \u4f60\u597d", **facts)

    def _answer(self) -> None:
        """A message of several lines: a thought, a text that grows, calls, and at last its counts."""
        random, message = self._random, self._id("m")
        self._messages.append(message)
        self._same: Fields = {"message": message, "model": random.choice(["opus", "sonnet"])}
        if random.random() < 0.1:
            self._same["fate"] = "sidecar"
        block = 0
        if random.random() < 0.5:
            # Longer than what a body holds of what the archive has.
            self._add("thought", **self._same, block=block, text="hm", proof=f"{message}/" * 40)
            block += 1
        words = random.choice(["words and words"] * 5 + ["words " * 12000])
        for share in range(1, random.choice([2, 4])):
            text = words[: len(words) * share // 3]
            told = {"fate": "superseded"} if random.random() < 0.1 else {}
            self._add("text", **{**self._same, **told}, block=block, text=text, tokens=[9, share])
        for _ in range(random.choice([0, 1, 2])):
            block += 1
            self._call(block)
        if random.random() < 0.8:
            self._add(
                "text", **self._same, block=block + 1, text="done", stop="end", tokens=[10, random.randint(12, 99)]
            )

    def _call(self, block: int) -> None:
        call = self._id("c")
        tool = self._random.choice(["Read", "Bash"])
        self._pending.append(call)
        self._add("call", **self._same, block=block, call=call, tool=tool, input={"path": f"/src/{call}", "n": 1})
        if self._random.random() < 0.2:
            self._add("spawn", call=call, session=f"toy:{call}")

    def _results(self) -> None:
        for call in self._pending:
            if self._random.random() < 0.7:
                self._result(call)
        self._pending = self._pending[-1:]

    def _result(self, call: str) -> None:
        text = self._random.choice(["ok", "ok", "no", LONG])
        spill = f"{call}.txt" if self._random.random() < 0.2 else None
        status = self._random.choice(["success", "success", "error", "aborted", "denied"])
        approved = self._random.choice([None, None, True, False])
        self._add("result", call=call, status=status, text=text, spill=spill, approved=approved)

    def _early_result(self) -> None:
        """A result that is written before its call."""
        call = f"c{self._number + 3}-{self.name}"
        self._result(call)
        self._same = {"message": self._id("m"), "model": "opus"}
        self._add("call", **self._same, call=call, tool="Bash")

    def _orphan(self) -> None:
        self._result(self._id("gone"))

    def _rewind(self) -> None:
        self._parent = self._random.choice([None, "never written", *self._records])
        self._prompt()

    def _resurface(self) -> None:
        """One more block of a message from long ago."""
        message = self._random.choice(self._messages)
        self._add("text", message=message, block=7, text="by the way", copied=self._random.random() < 0.3)

    def _compact(self) -> None:
        kept = self._random.sample(self._messages, min(2, len(self._messages)))
        self._add("compact", kept=kept)
        if self._random.random() < 0.7:
            message = self._id("m")
            self._messages.append(message)
            self._add("prompt", message=message, text="so far", summary=True)

    def _leaf(self) -> None:
        self.lines.append({"kind": "leaf", "leaf": self._random.choice(["", *self._records])})

    def _facts(self) -> None:
        mode = self._random.choice([None, "plan", "edit", "ask"])
        self._add("facts", version=f"1.{self._number}", branch=self._random.choice([None, "dev"]), mode=mode)

    def _title(self) -> None:
        source = self._random.choice(["custom", "generated", "summary"])
        self.lines.append({"kind": "title", "source": source, "text": f"about {self._number}"})

    def _unknown(self) -> None:
        self.lines.append({"kind": self._random.choice(["note", "earthquake"]), "text": "?", "at": self._at()})

    def _interrupt(self) -> None:
        self._add("interrupt")

    def _garbage(self) -> None:
        self.lines.append(self._random.choice(GARBAGE))

    def content(self) -> bytes:
        """The log's bytes: sometimes two records on a line, CRLF, or no newline at the end."""
        data = b""
        for line in self.lines:
            written = line if isinstance(line, bytes) else toy_agent.line(**line)
            ending = self._random.choice([b"\n"] * 8 + [b" ", b"\r\n"])
            data += written if isinstance(line, bytes) else written[:-1] + ending
        return data.rstrip() if self._random.random() < 0.4 else data.rstrip() + b"\n"


def make_world(seed: int, sessions: int = 3, steps: int = 8) -> World:
    """A home with so many sessions of so many steps each."""
    random = Random(seed)
    world: World = {}
    writers: list[Writer] = []
    has_backup = random.random() < 0.3
    for number in range(sessions):
        writer = Writer(random, f"s{number}", _prefix(random, writers), orderly=has_backup)
        writer.write(random.randint(1, steps))
        writers.append(writer)
        world[f"{writer.name}.log"] = writer.content()
    for writer in writers:
        _add_subagents(random, writer, world)
        _add_spills(random, writer, world)
        if random.random() < 0.4:
            world[f"{writer.name}.facts"] = b'{"generated":"named","mood":"good"}'
    if has_backup:
        # The same session twice, of which one copy may be old.
        whole = world["s0.log"]
        world["backup/s0.log"] = whole[: random.choice([len(whole), random.randint(0, len(whole))])]
    return world


def _prefix(random: Random, writers: list[Writer]) -> list[Fields | bytes]:
    """What a new session copies from another: nothing, or its first lines, as they are or marked as a copy."""
    if not writers or random.random() < 0.4:
        return []
    origin = random.choice(writers)
    lines = origin.lines[: random.randint(1, len(origin.lines))]
    marked = random.random() < 0.5
    copies: list[Fields | bytes] = [
        {**line, "copied": True} if isinstance(line, dict) and marked else line for line in lines
    ]
    if random.random() < 0.3:
        kind = random.choice(["fork", "continuation"])
        return [{"kind": "origin", "link": kind, "session": f"toy:{origin.name}"}, *copies]
    return copies


def _add_subagents(random: Random, writer: Writer, world: World) -> None:
    for line in writer.lines:
        if isinstance(line, dict) and line["kind"] == "spawn" and random.random() < 0.8:
            child = Writer(random, str(line["session"]).removeprefix("toy:"))
            if random.random() < 0.6:
                child.lines.append({"kind": "origin", "session": f"toy:{writer.name}", "block": 1})
            child.write(2)
            world[f"{child.name}.sub"] = child.content()


def _add_spills(random: Random, writer: Writer, world: World) -> None:
    for line in writer.lines:
        if isinstance(line, dict) and line.get("spill") and random.random() < 0.8:
            world[f"{writer.name}.spills/{line['spill']}"] = b"the whole output\n" * 20


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Homes of toy logs."""
    return make_world(draw(st.integers(0, 1 << 32)), draw(st.integers(1, 4)), draw(st.integers(1, 12)))


def write_world(home: Path, world: World) -> None:
    """Put every file of a world where it belongs."""
    for name, content in world.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


Schedule: TypeAlias = list[tuple[str, int]]
"""In which order files grow, and to what size: (path, bytes from its start)."""


def make_schedule(random: Random, world: World, cuts: int) -> Schedule:
    """Every file in up to `cuts` + 1 pieces, cut anywhere, all files mixed."""
    remaining: dict[str, list[int]] = {}
    for name, content in world.items():
        inside = sorted(random.randint(0, len(content)) for _ in range(random.randint(0, cuts)))
        whole = name.endswith((".log", ".sub"))
        remaining[name] = [*inside, len(content)] if whole else [len(content)]
    schedule: Schedule = []
    while remaining:
        name = random.choice(sorted(remaining))
        schedule.append((name, remaining[name].pop(0)))
        if not remaining[name]:
            del remaining[name]
    return schedule
