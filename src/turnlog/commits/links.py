"""The sessions that a commit, a pull request or a line of a file came from.

A link is *exact* (the session's own command printed the hash, or opened the pull request), by *content* (the commit
added lines that the session had written and no earlier commit had added), or only *possible* (the session changed one
of the files shortly before). Of several reasons for one session the best one counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from turnlog.commits.history import History, HistorySearch
from turnlog.commits.printed import Deed, Printed, PullRequest, printed_by, pull_request
from turnlog.commits.repository import NOT_COMMITTED, BlamedLine, Commit, Repository
from turnlog.commits.written import FileEdits, WrittenLines, comparable, comparable_lines
from turnlog.errors import NotFoundError
from turnlog.model import ToolCallPart, ToolKind
from turnlog.model.parts import call_summary
from turnlog.plain_text import one_line
from turnlog.store.base import ToolCallFilter
from turnlog.store.search.base import SearchFilter
from turnlog.store.values import StoreValue

Confidence: TypeAlias = Literal["exact", "content", "possible"]

Reason: TypeAlias = Deed | Literal["rewritten", "squashed", "trailer", "note", "lines", "touched"]

CONFIDENCES: Final[tuple[Confidence, ...]] = ("exact", "content", "possible")
"""The best first."""

REASONS: Final[dict[Reason, str]] = {
    "committed": "its git commit printed the hash",
    "amended": "its git commit --amend printed the hash",
    "picked": "its git cherry-pick printed the hash",
    "reverted": "its git revert printed the hash",
    "merged": "its git merge printed the hash",
    "pushed": "it pushed the commit",
    "rewritten": "it made the commit, which was rewritten later",
    "squashed": "the commit names one that it made",
    "opened": "it opened the pull request",
    "trailer": "a trailer of the commit names it",
    "note": "a git note on the commit names it",
    "lines": "it wrote lines that the commit added",
    "touched": "it changed a file of the commit shortly before",
}

_HITS = 500
"""The most places where a hash or an address is looked at: `git log` prints hashes often."""

_LONGEST_COMMAND = timedelta(hours=2)
"""How long before a commit the call that made it may have begun: its tests may run first."""

_CLOCK = timedelta(seconds=2)
"""git counts whole seconds, and a log is written a moment later."""

_FEW_LINES = 3
"""So many common lines are no accident. Fewer count if they are most of the commit, long, and recent."""

_FEW_LINES_WITHIN = timedelta(days=3)
_LONG_LINE = 24

_POSSIBLE_WITHIN = timedelta(days=1)
_CANDIDATES = 5

_PROMPT_CHARACTERS = 300


class OriginLink(StoreValue, frozen=True, kw_only=True):
    """A session that a commit, pull request or line came from, and the turn in it."""

    session_id: str
    agent: str
    title: str | None
    confidence: Confidence
    reason: Reason
    message_id: str
    position: int
    at: datetime | None
    turn: int | None
    prompt: str | None
    """The prompt of that turn, in one line of at most 300 characters."""
    lines: int | None = None
    """By content: how many of the commit's distinct lines the session had written."""
    of_lines: int | None = None
    """By content: how many distinct lines the commit added that say something."""


class _Found(NamedTuple):
    """A reason for a link, before the session is read."""

    session_id: str
    confidence: Confidence
    reason: Reason
    message_id: str
    position: int
    at: datetime | None
    lines: int | None = None
    of_lines: int | None = None

    @property
    def rank(self) -> tuple[int, int, int]:
        """Smaller is better. That a session pushed a commit says less than that it made it."""
        return CONFIDENCES.index(self.confidence), self.reason == "pushed", -(self.lines or 0)


class LineRange(StoreValue, frozen=True, kw_only=True):
    """Lines of a file, one after the other, that came from the same place."""

    first: int
    last: int
    """Both inclusive, from 1."""
    commit: str | None
    """None for lines that are not committed."""
    link: OriginLink | None
    """The session that they came from; None if no session is known to have written them."""


class LinkFinder:
    """Finds links in a store, for what is in one clone."""

    def __init__(self, store: History, searcher: HistorySearch, repository: Repository) -> None:
        """Look in this store, with its search index, for sessions of this clone."""
        self._store = store
        self._searcher = searcher
        self._repository = repository
        self._edits = FileEdits(store, repository)
        self._places = PlaceReader(store)

    def of_commit(self, commit: Commit) -> list[OriginLink]:
        """The links of a commit, the best first; candidates only if nothing better is found, and for no bot."""
        found = [*self._exact(commit), *self._by_content(commit)]
        if not found and not commit.is_by_bot:
            return self._places.links(self._possible(commit))[:_CANDIDATES]
        return self._places.links(found)

    def of_pull_request(self, wanted: PullRequest) -> list[OriginLink]:
        """The sessions that opened a pull request, and those of the commits that name it."""
        found = list(self._opened(wanted))
        if wanted.repository in self._repository.remotes:
            for commit in self._repository.with_number(wanted.number):
                found += [*self._exact(commit), *self._by_content(commit)]
        return self._places.links(found)

    def of_file(self, path: str, line: int | None = None) -> list[LineRange]:
        """Where the lines of a file in the working tree came from, or only this one; `path` is below the clone."""
        by_commit: dict[str, list[BlamedLine]] = defaultdict(list)
        for each in self._repository.blame(path, line):
            by_commit[each.commit].append(each)
        found: dict[int, tuple[str | None, OriginLink | None]] = {}
        for name, lines in by_commit.items():
            commit = None if name.startswith(NOT_COMMITTED) else self._repository.commit(name)
            links = self._of_lines(lines, commit)
            found |= {number: (None if commit is None else name, link) for number, link in links.items()}
        return list(_ranges(found))

    def _of_lines(self, lines: Sequence[BlamedLine], commit: Commit | None) -> dict[int, OriginLink | None]:
        """Line number -> the edit that wrote the line, or else the best link of its commit."""
        links = [] if commit is None else [link for link in self.of_commit(commit) if link.confidence != "possible"]
        if commit is not None and not links:
            return dict.fromkeys((line.number for line in lines), None)
        known = {link.session_id: link for link in links}
        until = datetime.now(UTC) if commit is None else commit.committed_at + _CLOCK
        written = [
            each for each in self._written(lines[0].path, commit, until) if commit is None or each.session_id in known
        ]
        return {line.number: self._of_line(line, written, known) for line in lines}

    def _of_line(
        self, line: BlamedLine, written: Iterable[WrittenLines], known: Mapping[str, OriginLink]
    ) -> OriginLink | None:
        best = next(iter(known.values()), None)
        text = comparable(line.text)
        edit = None if text is None else next((each for each in written if text in each.lines), None)
        if edit is None:
            return best
        link = known.get(edit.session_id)
        found = _Found(edit.session_id, "content", "lines", edit.message_id, edit.position, edit.at)
        if link is not None:
            found = found._replace(confidence=link.confidence, reason=link.reason)
        return next(iter(self._places.links([found])), best)

    # -- exact

    def _exact(self, commit: Commit) -> Iterator[_Found]:
        yield from self._printed(commit)
        yield from self._rewritten(commit)
        for named in _NAMED.finditer(commit.body):
            for found in self._printed_hash(named["hash"]):
                yield found._replace(reason="squashed")
        number = _NUMBER.search(commit.subject)
        if number is not None:
            for repository in self._repository.remotes:
                yield from self._opened(PullRequest(repository, int(number["number"] or number["merged"])))
        yield from self._named(commit)

    def _printed(self, commit: Commit) -> Iterator[_Found]:
        """Calls that printed the hash when they made, or pushed, the commit."""
        for found, printed, command in self._calls_with(f"{commit.hash[:7]}*"):
            if printed.hash is None or not commit.hash.startswith(printed.hash) or printed.deed == "opened":
                continue
            if printed.deed == "pushed":
                if not commit.is_by_bot:
                    yield found._replace(reason="pushed")
            elif commit.subject in command if not printed.is_certain else printed.subject == commit.subject:
                yield found._replace(reason=printed.deed)

    def _printed_hash(self, hash: str) -> Iterator[_Found]:
        for found, printed, _ in self._calls_with(f"{hash[:7]}*"):
            is_made = printed.deed not in ("pushed", "opened") and printed.is_certain
            if is_made and printed.hash is not None and hash.startswith(printed.hash):
                yield found

    def _rewritten(self, commit: Commit) -> Iterator[_Found]:
        """Calls that made a commit with this subject in the second in which it was first made: a rebase keeps both."""
        wanted = ToolCallFilter(
            kind=ToolKind.EXECUTE,
            since=commit.authored_at - _LONGEST_COMMAND,
            until=commit.authored_at + _CLOCK,
        )
        cursor: str | None = None
        while True:
            page = self._store.tool_calls(wanted, limit=200, cursor=cursor)
            for call in page.items:
                if call.started_at is None or call.started_at > commit.authored_at + _CLOCK:
                    continue
                if call.completed_at is not None and call.completed_at < commit.authored_at - _CLOCK:
                    continue
                part = self._part(call.message_id, call.session_id, call.tool_call_id)
                made = [] if part is None else printed_by(part)
                if any(each.subject == commit.subject and each.deed in _MAKING for each in made):
                    yield _Found(call.session_id, "exact", "rewritten", call.message_id, call.position, call.started_at)
            cursor = page.next_cursor
            if cursor is None:
                return

    def _opened(self, wanted: PullRequest) -> Iterator[_Found]:
        for found, printed, _ in self._calls_with(wanted.query):
            if printed.url is not None and pull_request(printed.url) == wanted:
                yield found._replace(reason="opened")

    def _named(self, commit: Commit) -> Iterator[_Found]:
        """Sessions whose id is in a trailer of the commit or in a note on it."""
        words: dict[str, Reason] = {}
        for trailer in _TRAILER.finditer(commit.body):
            words |= dict.fromkeys(_ID.findall(trailer["value"]), "trailer")
        for note in self._repository.notes(commit):
            words |= dict.fromkeys(_ID.findall(note), "note")
        agents = [summary.agent for summary in self._store.agents()] if words else []
        for word, reason in words.items():
            for agent in agents:
                session = self._store.find_session(agent, word)
                if session is not None:
                    first = next(iter(self._store.messages(session.id, limit=1, resolve_blobs=False)), None)
                    if first is not None:
                        place = first.membership
                        yield _Found(session.id, "exact", reason, place.message_id, place.position, None)

    def _calls_with(self, query: str) -> Iterator[tuple[_Found, Printed, str]]:
        """What calls printed in whose outputs the query is, with the text of each call's input."""
        seen: set[tuple[str, int]] = set()
        cursor: str | None = None
        while len(seen) < _HITS:
            page = self._searcher.search(query, SearchFilter(field="output"), limit=100, cursor=cursor)
            for hit in page.hits:
                if (hit.message_id, hit.part) in seen or not hit.places:
                    continue
                seen.add((hit.message_id, hit.part))
                place = hit.places[0]
                message = self._store.message(hit.message_id, session_id=place.session_id)
                part = message.parts[hit.part] if hit.part < len(message.parts) else None
                if not isinstance(part, ToolCallPart):
                    continue
                command = call_summary(part) or part.input_text or ""
                at = part.started_at or message.created_at
                for printed in printed_by(part):
                    found = _Found(place.session_id, "exact", "committed", hit.message_id, place.position, at)
                    yield found, printed, command
            cursor = page.next_cursor
            if cursor is None:
                return

    def _part(self, message_id: str, session_id: str, call: str) -> ToolCallPart | None:
        message = self._store.message(message_id, session_id=session_id)
        parts = (part for part in message.parts if isinstance(part, ToolCallPart) and part.tool_call_id == call)
        return next(parts, None)

    # -- content

    def _by_content(self, commit: Commit) -> Iterator[_Found]:
        """Sessions that wrote lines which this commit was the first to add."""
        if commit.is_by_bot:
            return
        changes = self._repository.changes(commit)
        total = 0
        matched: dict[str, list[tuple[WrittenLines, frozenset[str]]]] = defaultdict(list)
        for change in changes:
            lines = comparable_lines(change.added) - comparable_lines(change.removed)
            total += len(lines)
            for written, common in self._matches(commit, change.path, lines):
                matched[written.session_id].append((written, common))
        for session_id, found in matched.items():
            common = frozenset[str]().union(*(lines for _, lines in found))
            best = max(found, key=lambda each: (len(each[1]), each[0].at))[0]
            if _is_no_accident(common, total, commit.committed_at - best.at):
                place = best.message_id, best.position, best.at
                yield _Found(session_id, "content", "lines", *place, len(common), total)

    def _matches(
        self, commit: Commit, path: str, lines: frozenset[str]
    ) -> Iterator[tuple[WrittenLines, frozenset[str]]]:
        if not lines:
            return
        wanted = [each for each in self._written(path, commit, commit.committed_at + _CLOCK) if each.lines & lines]
        if not wanted:
            return
        earlier = self._repository.added_earlier(commit, path, min(each.at for each in wanted))
        for written in wanted:
            taken = [comparable_lines(added) for at, added in earlier if at >= written.at - _CLOCK]
            common = (written.lines & lines).difference(*taken)
            if common:
                yield written, common

    def _written(self, path: str, commit: Commit | None, until: datetime) -> Iterator[WrittenLines]:
        """What sessions wrote into a file up to a time, newest first."""
        for touch in self._edits.touches(path, until):
            written = self._edits.written(touch, path, commit)
            if written is not None:
                yield written

    # -- possible

    def _possible(self, commit: Commit) -> Iterator[_Found]:
        since = commit.committed_at - _POSSIBLE_WITHIN
        for change in self._repository.changes(commit):
            for touch in self._edits.touches(change.path, commit.committed_at + _CLOCK):
                call = touch.call
                at = call.started_at or call.completed_at
                if at is not None and at >= since:
                    yield _Found(call.session_id, "possible", "touched", call.message_id, call.position, at)


_MAKING: Final = ("committed", "amended", "picked", "reverted")

_NAMED = re.compile(r"^\s*(?:commit |\(cherry picked from commit )(?P<hash>[0-9a-f]{40})\)?$", re.MULTILINE)
"""As `git merge --squash` and `git cherry-pick -x` write into a message."""

_NUMBER = re.compile(r"\(#(?P<number>\d+)\)$|^Merge pull request #(?P<merged>\d+)\b")
_TRAILER = re.compile(r"^[\w-]*(?:session|checkpoint|thread|conversation)[\w-]*:\s*(?P<value>\S.*)$", re.I | re.M)
_ID = re.compile(r"[\w-]{8,}")


def _ranges(found: Mapping[int, tuple[str | None, OriginLink | None]]) -> Iterator[LineRange]:
    """Neighbouring lines from the same place as one range."""
    numbers = sorted(found)
    first = 0
    for at, number in enumerate(numbers):
        if at + 1 < len(numbers) and numbers[at + 1] == number + 1 and found[numbers[at + 1]] == found[number]:
            continue
        commit, link = found[number]
        yield LineRange(first=numbers[first], last=number, commit=commit, link=link)
        first = at + 1


def _is_no_accident(common: Iterable[str], total: int, age: timedelta) -> bool:
    found = list(common)
    if len(found) >= _FEW_LINES:
        return True
    return age <= _FEW_LINES_WITHIN and 2 * len(found) >= total and any(len(line) >= _LONG_LINE for line in found)


class PlaceReader:
    """Reads what a link says of its session: title, turn and prompt. Keeps the landmarks of sessions once read."""

    def __init__(self, store: History) -> None:
        """Read from this store."""
        self._store = store
        self._prompts: dict[str, list[tuple[int, int | None, str]]] = {}

    def links(self, found: Iterable[_Found]) -> list[OriginLink]:
        """The links, one a session, the best and the newest first."""
        best: dict[str, _Found] = {}
        for each in found:
            known = best.get(each.session_id)
            if known is None or each.rank < known.rank:
                best[each.session_id] = each
        ordered = sorted(best.values(), key=lambda each: (each.rank, -(each.at.timestamp() if each.at else 0)))
        return [link for each in ordered if (link := self._link(each)) is not None]

    def turn(self, session_id: str, position: int) -> tuple[int | None, str | None]:
        """The turn at a position, and its prompt in one line."""
        if session_id not in self._prompts:
            self._prompts[session_id] = [
                (entry.position, entry.turn, entry.text)
                for entry in self._store.outline(session_id)
                if entry.kind not in _NO_PROMPTS
            ]
        before = [prompt for prompt in self._prompts[session_id] if prompt[0] <= position]
        if not before:
            return None, None
        return before[-1][1], one_line(before[-1][2], _PROMPT_CHARACTERS)

    def _link(self, found: _Found) -> OriginLink | None:
        try:
            session = self._store.session(found.session_id)
        except NotFoundError:
            return None
        turn, prompt = self.turn(found.session_id, found.position)
        return OriginLink(
            session_id=session.id,
            agent=session.agent,
            title=session.title,
            confidence=found.confidence,
            reason=found.reason,
            message_id=found.message_id,
            position=found.position,
            at=found.at,
            turn=turn,
            prompt=prompt,
            lines=found.lines,
            of_lines=found.of_lines,
        )


_NO_PROMPTS: Final = frozenset(("compaction", "rewind", "error", "pin"))
