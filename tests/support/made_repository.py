"""A git repository that sessions, people and bots have worked on, with the sessions' logs and who made which commit.

Every hash that a log has was printed by git. The clock is ours, so that logs and commits agree as they do on a machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)

REMOTE = "https://forge.example/acme/shop"


class Clock:
    """Time that passes when something is done."""

    def __init__(self) -> None:
        self.now = _START

    def tick(self, seconds: float = 20) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


class MadeRepository:
    """The repository. `truth` names the sessions of each commit; the empty set is a person's or a bot's own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self.clock = Clock()
        self.truth: dict[str, set[str]] = {}
        self.kinds: dict[str, str] = {}
        self.bots = 0
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", f"{REMOTE}.git")

    def git(self, *arguments: str, author: str = "Ana", email: str = "ana@example.org") -> str:
        at = f"{int(self.clock.now.timestamp())} +0000"
        environment = {
            **{"PATH": os.environ["PATH"], "HOME": str(self.folder.parent), "GIT_CONFIG_NOSYSTEM": "1"},
            **{"GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": at},
            **{"GIT_COMMITTER_NAME": author, "GIT_COMMITTER_EMAIL": email, "GIT_COMMITTER_DATE": at},
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def write(self, path: str, lines: Iterable[str]) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))

    def lines(self, path: str) -> list[str]:
        file = self.folder / path
        return file.read_text().splitlines() if file.exists() else []

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def record(self, kind: str, *sessions: Session) -> str:
        """The commit that is checked out, and whose it truly is."""
        made = self.head()
        self.truth[made] = {f"claude-code:{session.name}" for session in sessions}
        self.kinds[made] = kind
        return made

    def commit_by_hand(self, message: str, *, author: str = "Ana", email: str = "ana@example.org") -> None:
        self.clock.tick()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, author=author, email=email)


class Session:
    """A session of Claude Code in the repository: what it does is done, and is in its log."""

    def __init__(self, repository: MadeRepository, prompt: str) -> None:
        self.repository = repository
        self.name = str(uuid.uuid5(uuid.NAMESPACE_URL, prompt))
        self._records: list[dict[str, Any]] = []
        self._parent: str | None = None
        self._count = 0
        self.ask(prompt)

    def ask(self, prompt: str) -> None:
        self._add("user", {"role": "user", "content": prompt})

    def write(self, path: str, lines: list[str]) -> None:
        """Write a whole file. The log has the file only, as for one that is new."""
        self.repository.write(path, lines)
        content = "".join(f"{line}\n" for line in lines)
        self._call("Write", {"file_path": self._whole(path), "content": content}, "written")

    def edit(self, path: str, old: list[str], new: list[str]) -> None:
        """Replace lines, or add them at the end."""
        before = self.repository.lines(path)
        if old:
            at = before.index(old[0])
            after = [*before[:at], *new, *before[at + len(old) :]]
        else:
            at, after = len(before), [*before, *new]
        self.repository.write(path, after)
        hunk = {
            **{"oldStart": at + 1, "oldLines": len(old), "newStart": at + 1, "newLines": len(new)},
            "lines": [*(f"-{line}" for line in old), *(f"+{line}" for line in new)],
        }
        patch = {"filePath": self._whole(path), "structuredPatch": [hunk]}
        given = {"file_path": self._whole(path), "old_string": "\n".join(old), "new_string": "\n".join(new)}
        self._call("Edit", given, "edited", patch)

    def run(self, command: str, *arguments: str) -> str:
        """Run git as a shell would, and log the command and all that git printed."""
        self.repository.clock.tick(3)
        printed = self.repository.git(*arguments)
        self._call("Bash", {"command": command}, printed)
        return printed

    def commit(self, message: str, *, amend: bool = False) -> None:
        self.repository.clock.tick(3)
        self.repository.git("add", "-A")
        more = ["--amend"] if amend else []
        words = " --amend" if amend else ""
        self.run(f'git add -A && git commit{words} -m "{message}"', "commit", *more, "-m", message)

    def commit_quietly(self, message: str) -> None:
        """`git commit -q` prints nothing; the hash comes from the command after it."""
        self.repository.git("add", "-A")
        self.repository.git("commit", "-q", "-m", message)
        self.run(f'git commit -qam "{message}" && git log --oneline -1', "log", "--oneline", "-1")

    def open_pull_request(self, number: int) -> None:
        self._call("Bash", {"command": "gh pr create --fill"}, f"{REMOTE}/pull/{number}\n")

    def save(self) -> None:
        folder = self.repository.home / "projects" / "-made-shop"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(record) + "\n" for record in self._records)
        (folder / f"{self.name}.jsonl").write_text("".join(lines))

    def _whole(self, path: str) -> str:
        return str(self.repository.folder / path)

    def _call(self, tool: str, given: dict[str, Any], printed: str, structured: Any = None) -> None:
        call = f"toolu_{self.name[:8]}_{self._count}"
        use = {"type": "tool_use", "id": call, "name": tool, "input": given}
        answer = {"id": f"msg_{call}", "role": "assistant", "model": "claude-test-1", "content": [use]}
        usage = {"input_tokens": 1, "output_tokens": 1}
        self._add("assistant", {**answer, "type": "message", "stop_reason": "tool_use", "usage": usage}, -1)
        result = {"type": "tool_result", "tool_use_id": call, "content": printed}
        self._add("user", {"role": "user", "content": [result]}, 1, toolUseResult=structured or printed)

    def _add(self, kind: str, message: dict[str, Any], seconds: float = 20, **more: Any) -> None:
        at = (
            self.repository.clock.now + timedelta(seconds=seconds)
            if seconds < 0
            else self.repository.clock.tick(seconds)
        )
        self._count += 1
        record = {
            **{"type": kind, "uuid": f"{self.name}-{self._count}", "parentUuid": self._parent},
            **{"sessionId": self.name, "cwd": str(self.repository.folder), "version": "2.1.98"},
            **{"gitBranch": "main", "timestamp": at.isoformat().replace("+00:00", "Z"), "message": message},
            **more,
        }
        self._parent = f"{self.name}-{self._count}"
        self._records.append(record)


def make_repository(folder: Path, home: Path) -> MadeRepository:
    """40 commits that came from sessions, 20 of bots and 5 of a person, on one branch."""
    made = MadeRepository(folder, home)
    made.write(
        "pyproject.toml", ["[project]", 'name = "shop"', 'version = "1.0.0"', 'dependencies = ["httpx>=0.20.0"]']
    )
    made.write("src/till.py", ["def total(items):", "    return sum(item.price for item in items)"])
    made.write("README.md", ["# Shop", "A till for small shops."])
    made.commit_by_hand("Begin")
    made.record("by a person")
    sessions = [
        *_direct(made),
        *_amended(made),
        *_rebased(made),
        *_squashed(made),
        *_by_hand(made),
    ]
    _people(made)
    for session in sessions:
        session.save()
    return made


def _function(name: str, number: int) -> list[str]:
    return [
        f"def {name}_{number}(basket, rate):",
        f'    """Work out the {name} of basket number {number}."""',
        f"    amount = basket.value_{number}(rate) * {number + 3}",
        f"    return round(amount, {number % 4 + 1})",
    ]


_BOTS = (
    ("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.example"),
    ("Release Train", "releases@example.org"),
    ("nightly", "nightly@example.org"),
)


_FORMATTED = {2: "src/till.py", 8: "src/tax.py", 14: "src/stock_0.py"}
_REVERTS = (5, 11)


def _bot(made: MadeRepository) -> None:
    """A bot commits to files that sessions work on, seconds after they did; only one of three says that it is a bot."""
    number = made.bots
    made.bots += 1
    author, email = _BOTS[number % 3]
    lines = made.lines("pyproject.toml")
    if number in _FORMATTED:
        path = _FORMATTED[number]
        made.write(path, [line.replace("    ", "\t", 1) for line in made.lines(path)])
        made.commit_by_hand("Format the code", author=author, email=email)
    elif number in _REVERTS:
        made.clock.tick()
        made.git("revert", "--no-edit", "HEAD", author=author, email=email)
        made.record("by a bot")
        made.git("revert", "--no-edit", "HEAD", author=author, email=email)
    elif number % 2:
        lines[2] = f'version = "1.{number}.0"'
        made.write("pyproject.toml", lines)
        made.write("CHANGELOG.md", [f"## 1.{number}.0", "", *made.lines("CHANGELOG.md")])
        made.commit_by_hand(f"Release 1.{number}.0", author=author, email=email)
    else:
        lines[3] = f'dependencies = ["httpx>=0.{number + 21}.0"]'
        made.write("pyproject.toml", lines)
        made.commit_by_hand(f"Bump httpx to 0.{number + 21}.0", author=author, email=email)
    made.record("by a bot")


def _direct(made: MadeRepository) -> list[Session]:
    sessions: list[Session] = []
    for number in range(12):
        session = Session(made, f"Add the discount of basket {number}")
        session.edit("src/till.py", [], _function("discount", number))
        message = f"Add discount {number}"
        if number % 4 == 3:
            session.commit_quietly(message)
        else:
            session.commit(message)
        made.record("by a session", session)
        if number % 2:
            _bot(made)
        sessions.append(session)
    return sessions


def _amended(made: MadeRepository) -> list[Session]:
    sessions: list[Session] = []
    for number in range(8):
        session = Session(made, f"Work out the tax of basket {number}")
        session.edit("src/tax.py", [], _function("tax", number))
        session.commit(f"Add tax {number}")
        if number % 2:
            session.ask("Say it in the docs too")
            session.edit("README.md", [], [f"The tax of basket {number} is worked out by tax_{number}."])
            session.commit(f"Add tax {number} and its docs", amend=True)
        else:
            made.write(f"notes/{number}.md", [f"A note that Ana wrote by hand about case {number}."])
            made.git("add", "-A")
            made.clock.tick(600)
            _keep_author_date(made)
        made.record("amended", session)
        if number % 2:
            _bot(made)
        sessions.append(session)
    return sessions


def _keep_author_date(made: MadeRepository) -> None:
    """`git commit --amend` by hand: the date of the author stays, since a person sets no variable for it."""
    at = made.git("show", "-s", "--format=%ad", "--date=raw").strip()
    made.git("commit", "-q", "--amend", "--no-edit", f"--date={at}")


def _rebased(made: MadeRepository) -> list[Session]:
    sessions: list[Session] = []
    for number in range(4):
        made.git("checkout", "-q", "-b", f"rebased-{number}")
        session = Session(made, f"Count the stock of shelf {number}")
        for step in range(2):
            session.edit(f"src/stock_{number}.py", [], _function(f"stock_{step}", number))
            session.commit(f"Count shelf {number}, step {step}")
        made.git("checkout", "-q", "main")
        _bot(made)
        made.git("checkout", "-q", f"rebased-{number}")
        made.clock.tick(3600)
        made.git("rebase", "-q", "main")
        made.git("checkout", "-q", "main")
        made.git("merge", "-q", "--ff-only", f"rebased-{number}")
        for commit in made.git("rev-list", "-2", "main").split():
            made.truth[commit] = {f"claude-code:{session.name}"}
            made.kinds[commit] = "rebased"
        sessions.append(session)
    return sessions


def _squashed(made: MadeRepository) -> list[Session]:
    sessions: list[Session] = []
    for number in range(6):
        made.git("checkout", "-q", "-b", f"squashed-{number}")
        session = Session(made, f"Print the receipt of till {number}")
        for step in range(3):
            session.edit(f"src/receipt_{number}.py", [], _function(f"receipt_{step}", number))
            session.commit(f"Print receipt {number}, part {step}")
        if number % 3 == 0:
            session.open_pull_request(number + 10)
        made.git("checkout", "-q", "main")
        if number < 4:
            _bot(made)
        made.git("merge", "-q", "--squash", f"squashed-{number}")
        made.clock.tick(7200)
        message = (f"Receipts of till {number} (#{number + 10})", f"Receipts of till {number}", None)[number % 3]
        # Without a message of its own it is the one that git proposes, which names the commits.
        made.git("commit", "-q", *(("--no-edit",) if message is None else ("-m", message)))
        made.record("squashed", session)
        sessions.append(session)
    return sessions


def _by_hand(made: MadeRepository) -> list[Session]:
    sessions: list[Session] = []
    for number in range(6):
        session = Session(made, f"Describe the shelf label {number}")
        if number % 2:
            session.write(f"src/label_{number}.py", _function("label", number))
        else:
            session.edit("src/till.py", [], _function("label", number))
        made.clock.tick(900)
        made.commit_by_hand(f"Labels {number}")
        made.record("by hand", session)
        sessions.append(session)
    return sessions


def _people(made: MadeRepository) -> None:
    """A person's own commits to the files of sessions."""
    for number in range(4):
        made.write("src/till.py", [*made.lines("src/till.py"), "", *_function("person", number)])
        made.commit_by_hand(f"Think about case {number}")
        made.record("by a person")


def make_pull_requests(folder: Path, home: Path, count: int) -> MadeRepository:
    """Pull requests from `(#1)` on, each squashed into one commit: of three, two by sessions and one by a bot.

    Three of four sessions opened theirs themselves; a person opened the others, of which no log has the number.
    """
    made = MadeRepository(folder, home)
    made.write("pyproject.toml", ["[project]", 'name = "shop"', 'version = "1.0.0"', 'dependencies = ["httpx>=1"]'])
    made.commit_by_hand("Begin")
    for number in range(1, count + 1):
        made.git("checkout", "-q", "-b", f"request-{number}")
        title = f"Receipts of till {number} (#{number})"
        if number % 3 == 0:
            author, email = _BOTS[number // 3 % 3]
            title = f"Bump httpx to {number} (#{number})"
            lines = made.lines("pyproject.toml")
            made.write("pyproject.toml", [*lines[:3], f'dependencies = ["httpx>={number}"]'])
            made.commit_by_hand("Bump", author=author, email=email)
            made.git("checkout", "-q", "main")
            made.git("merge", "-q", "--squash", f"request-{number}")
            made.clock.tick()
            made.git("commit", "-q", "-m", title, author=author, email=email)
            made.record("by a bot")
            continue
        session = Session(made, f"Print the receipt of till {number}")
        for step in range(2):
            session.edit("src/receipts.py", [], _function(f"receipt_{step}", number))
            session.commit(f"Print receipt {number}, part {step}")
        if number % 3 == 1 or number % 2:
            session.open_pull_request(number)
        session.save()
        made.git("checkout", "-q", "main")
        made.git("merge", "-q", "--squash", f"request-{number}")
        made.clock.tick(7200)
        made.git("commit", "-q", "-m", title)
        made.record("squashed", session)
    return made
