"""The questions that a coding agent may ask about earlier sessions, each answered as text of a bounded length.

By default an agent sees the sessions of its own project only. Answers have no secrets that `turnlog.redact` knows,
and mark what earlier sessions said as quoted text. Every list and every session continues at a cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from os.path import normpath, realpath
from pathlib import Path
from typing import Final, NamedTuple, get_args

from turnlog.commits.links import REASONS, LineRange, OriginLink
from turnlog.errors import NotFoundError
from turnlog.formats.labels import facts, moment
from turnlog.mcp.budget import DEFAULT_TOKENS, Budget, clean, clean_title, cut, quote
from turnlog.mcp.messages import message_text, output_of
from turnlog.model import Fate, Session, ToolCallPart
from turnlog.redact import KnownValues
from turnlog.store.base import SessionFilter, Store, ToolCallFilter, UsageFilter
from turnlog.store.choices import UsageBy
from turnlog.store.search.base import SearchFilter, SessionHits, search_path
from turnlog.store.search.searcher import Searcher
from turnlog.store.session_secrets import SessionSecrets
from turnlog.store.usage_report import ProjectSummary, UsageRow, UsageTotals

_SHOWN_FATES = (Fate.ACTIVE, Fate.COMPACTED)
"""The conversation as it went, without branches that were left."""

_WHICH_FOLDER: Final = "all projects are shown: name a file by its absolute path"

_PAGE = 20
"""Messages that are read at once."""


_KEPT = 8
"""Sessions whose secrets are kept in memory: a long session is read in many pages."""


class HistoryScope(NamedTuple):
    """Which sessions an agent may see."""

    project: str | None = None
    """Path of the only project; None: all projects."""
    is_redacted: bool = True
    """Whether secrets are masked."""


def project_of(projects: Iterable[ProjectSummary], folder: Path) -> str:
    """The path of the project that a folder is in, the innermost one; the folder itself if it is in none."""
    around = [
        (len(path), project.path)
        for project in projects
        for path in (project.path, *project.merged)
        if folder == Path(path) or Path(path) in folder.parents
    ]
    return max(around, default=(0, str(folder)))[1]


class History:
    """Answers questions from a store. Any number of threads may ask at once."""

    def __init__(self, store: Store, searched: Path | Searcher, scope: HistoryScope) -> None:
        """Answer from this open store; it is searched in the file at a path, or by a searcher."""
        self._store = store
        self._searcher = searched if isinstance(searched, Searcher) else Searcher(searched, search_path(searched))
        self._scope = scope
        self._known: dict[str, tuple[datetime | None, KnownValues]] = {}
        """Session -> when it had changed last, and its secrets; the last ones that were read."""

    def close(self) -> None:
        """Close the search index. The store stays open."""
        self._searcher.close()

    # -- finding

    def search(
        self,
        query: str,
        *,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10,
        cursor: str | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> str:
        """The sessions that fit a query, the best first, each with its best hit."""
        wanted = SearchFilter(agent=agent, project=self._scope.project, since=since, until=until)
        page = self._searcher.sessions(query, wanted, limit=limit, cursor=cursor, masked=self._clean)
        if not page.sessions:
            hint = f" Did you mean {clean(page.suggestion, redacted=True)!r}?" if page.suggestion else ""
            return f"Nothing was found{self._place}.{hint}"
        entries = ["\n".join(self._hit_lines(found)) for found in page.sessions]
        # A cursor is the end of a whole page, so a shorter page is asked for again.
        fitting = self._fitting(entries, max_tokens)
        if fitting < len(entries):
            page = self._searcher.sessions(query, wanted, limit=fitting, cursor=cursor, masked=self._clean)
        notes = [_more(page.next_cursor)]
        if page.unindexed:
            messages = "message is" if page.unindexed == 1 else "messages are"
            notes.append(f"{page.unindexed} new {messages} not searchable yet.")
        return self._answer(entries[:fitting], notes)

    def sessions(
        self,
        *,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        cursor: str | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> str:
        """Sessions, the last used first."""
        wanted = SessionFilter(agent=agent, project=self._scope.project, since=since, until=until)
        page = self._store.sessions(wanted, limit=limit, cursor=cursor)
        if not page.items:
            return f"There are no sessions{self._place}."
        entries = [self._session_line(session) for session in page.items]
        fitting = self._fitting(entries, max_tokens)
        if fitting < len(entries):
            page = self._store.sessions(wanted, limit=fitting, cursor=cursor)
        return self._answer(entries[:fitting], [_more(page.next_cursor)])

    # -- reading

    def session(
        self,
        session_id: str,
        *,
        around: int | None = None,
        cursor: int | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> str:
        """A session from its beginning, from a cursor, or around a position, as far as the tokens go.

        Raises NotFoundError for a session that does not exist or is of another project.
        """
        session = self._find(session_id)
        budget = _budget(max_tokens)
        lines: list[str] = []
        known = self._secrets_of(session)
        if cursor is None and around is None:
            shown = [known.mask(f"{name}: {value}") for name, value in facts(session)]
            lines = [line for line in shown if budget.take(line)]
        last: int | None = None
        after = cursor if around is None else self._before(session.id, around)
        for position, text in self._texts(session.id, after, known):
            if budget.take(text):
                lines.append(text)
            elif last is None:
                # Larger than the whole answer: its beginning and end are better than nothing.
                lines.append(cut(text, budget.characters, ": ask with more max_tokens"))
                budget.end()
            else:
                return self._answer(lines, [f"The session goes on: cursor={last}"])
            last = position
        return self._answer(lines, ["The session ends here."])

    def output(self, session_id: str, call: str, *, offset: int = 0, max_tokens: int = DEFAULT_TOKENS) -> str:
        """The whole output of a tool call, from a character on, as far as the tokens go.

        Raises NotFoundError for a call that the session does not have.
        """
        session = self._find(session_id)
        budget = _budget(max_tokens)
        # Offsets are of the clean text: one of another would show the rest of a token as plain text.
        whole = self._whole_output(session.id, self._call(session.id, call))
        text = clean(whole, redacted=self._scope.is_redacted, known=self._secrets_of(session))
        shown = _beginning(text[max(0, offset) :], budget)
        end = max(0, offset) + len(shown)
        rest = f"More: offset={end} of {len(text):,} characters." if end < len(text) else "That is all of the output."
        return self._answer([shown], [rest])

    def file(self, path: str, *, limit: int = 20, cursor: str | None = None, max_tokens: int = DEFAULT_TOKENS) -> str:
        """The calls that read or changed a file, the newest first. A relative path is one in the project's folder.

        Raises NotFoundError for a relative path where all projects are shown.
        """
        if not Path(path).is_absolute():
            if self._scope.project is None:
                raise NotFoundError(_WHICH_FOLDER)
            path = normpath(f"{self._scope.project}/{path}")
        wanted = ToolCallFilter(path=path, project=self._scope.project)
        page = self._store.tool_calls(wanted, limit=limit, cursor=cursor)
        if not page.items:
            return f"No call touched {path}{self._place}."
        entries = [
            f"{moment(call.started_at) or 'unknown time'} · {call.tool_name} ({call.kind}, {call.state})"
            f" · session {call.session_id} at [{call.position}] · call {call.tool_call_id}"
            for call in page.items
        ]
        fitting = self._fitting(entries, max_tokens)
        if fitting < len(entries):
            page = self._store.tool_calls(wanted, limit=fitting, cursor=cursor)
        return self._answer(entries[:fitting], [_more(page.next_cursor)])

    def usage(
        self,
        by: UsageBy = "day",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> str:
        """Tokens and cost by day, model or whatever else."""
        if by not in get_args(UsageBy):
            raise ValueError(f"by cannot be {by!r}: expected one of {', '.join(get_args(UsageBy))}")
        report = self._store.usage(by, UsageFilter(since=since, until=until, project=self._scope.project), zone=None)
        lines = [_usage_line(row) for row in report.rows]
        fitting = self._fitting(lines, max_tokens)
        rest = [f"{len(lines) - fitting} more rows are left out."] if fitting < len(lines) else []
        return self._answer(lines[:fitting] or ["no usage"], [*rest, *report.contains, *report.missing])

    def why(self, subject: str, *, max_tokens: int = DEFAULT_TOKENS) -> str:
        """The sessions that a line, file, commit or pull request of the project's clone came from.

        Raises NotFoundError for what is not there, and for a file outside of the project.
        """
        from turnlog.commits.origin import find_origin

        folder = self._scope.project
        if folder is None:
            # A commit's name says nothing about the clone that it is in.
            base = Path(subject).parent if Path(subject).is_absolute() else None
        else:
            base = Path(folder)
            if not Path(realpath(base / subject)).is_relative_to(realpath(base)):
                raise NotFoundError(f"{subject} is not in {folder}")
        if base is None:
            raise NotFoundError(_WHICH_FOLDER)
        origin = find_origin(subject, self._store, self._searcher, base=base)
        entries = [
            *self._link_entries(origin.links),
            *(self._range_line(each) for each in origin.ranges if not origin.is_line),
        ]
        if not any(entries):
            return f"No session{self._place} is known to have made or written {subject}."
        fitting = self._fitting(entries, max_tokens)
        rest = [f"{len(entries) - fitting} more entries are left out."] if fitting < len(entries) else []
        return self._answer(entries[:fitting], rest)

    # -- inside

    @property
    def _place(self) -> str:
        return "" if self._scope.project is None else f" in {self._scope.project}"

    def _clean(self, text: str) -> str:
        return clean(text, redacted=self._scope.is_redacted)

    def _secrets_of(self, session: Session) -> KnownValues:
        """What names and contexts in a session show to be secrets, to be masked where it stands alone."""
        if not self._scope.is_redacted:
            return KnownValues()
        at, known = self._known.pop(session.id, (None, KnownValues()))
        if at is None or at != session.updated_at:
            known = SessionSecrets(self._store, session).known
        self._known[session.id] = (session.updated_at, known)
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return known

    def _answer(self, lines: Iterable[str], notes: Iterable[str]) -> str:
        quoted = quote(self._clean("\n".join(lines)))
        return "\n".join([quoted, *notes])

    def _fitting(self, entries: Sequence[str], max_tokens: int) -> int:
        """How many entries of a list fit, and one at least: the list continues after them."""
        budget = _budget(max_tokens)
        fitting = 0
        for entry in entries:
            if not budget.take(self._clean(entry)):
                break
            fitting += 1
        return fitting or min(1, len(entries))

    def _session_line(self, session: Session) -> str:
        words = [
            session.id,
            moment(session.updated_at),
            self._title(session.title),
            f"{session.counts.turns} turns",
            session.project.name if session.project else None,
        ]
        return " · ".join(word for word in words if word)

    def _hit_lines(self, found: SessionHits) -> Iterator[str]:
        yield " · ".join(
            word for word in (found.session_id, moment(found.updated_at), self._title(found.title)) if word
        )
        hit = found.hit
        if hit is None:
            named = [f"{name.field} {self._name(name.text)}" for name in found.names]
            yield f"  named so: {', '.join(named)}"
            return
        place = next((place for place in hit.places if place.session_id == found.session_id), None)
        where = "" if place is None else f" at [{place.position}]"
        kind = hit.tool_name or hit.role
        more = f" (+{found.matches - 1})" if found.matches > 1 else ""
        yield f"  {kind}{where}: {hit.snippet}{more}"

    def _link_entries(self, links: Iterable[OriginLink]) -> Iterator[str]:
        for link in links:
            if self._may_see(link.session_id):
                count = f", {link.lines} of {link.of_lines} lines" if link.of_lines is not None else ""
                yield (
                    f"{link.session_id} at [{link.position}] · {moment(link.at) or 'unknown time'}"
                    f" · {self._title(link.title)}\n  {link.confidence}: {REASONS[link.reason]}{count}"
                    + (f"\n  prompt: {link.prompt}" if link.prompt else "")
                )

    def _range_line(self, lines: LineRange) -> str:
        place = f"lines {lines.first}-{lines.last}: commit {lines.commit or 'none yet'}"
        link = lines.link
        if link is None or not self._may_see(link.session_id):
            return f"{place}, no session"
        return f"{place}, {link.session_id} at [{link.position}], {link.confidence}"

    def _may_see(self, session_id: str) -> bool:
        try:
            self._find(session_id)
        except NotFoundError:
            return False
        return True

    def _title(self, title: str | None) -> str:
        return clean_title(title, 120, redacted=self._scope.is_redacted)

    def _name(self, name: str) -> str:
        return clean_title(name, 80, redacted=self._scope.is_redacted)

    def _find(self, session_id: str) -> Session:
        """The session. One of another project is as one that does not exist."""
        session = self._store.session(session_id)
        wanted = self._scope.project
        if wanted is not None and (session.project is None or session.project.path != wanted):
            raise NotFoundError(f"there is no session {session_id}{self._place}")
        return session

    def _texts(self, session_id: str, after: int | None, known: KnownValues) -> Iterator[tuple[int, str]]:
        """The messages of a session after a position, each with its own position."""
        while True:
            page = self._store.messages(session_id, after=after, limit=_PAGE, fates=_SHOWN_FATES, resolve_blobs=False)
            for placed in page:
                yield placed.membership.position, message_text(placed, redacted=self._scope.is_redacted, known=known)
            if len(page) < _PAGE:
                return
            after = page[-1].membership.position

    def _before(self, session_id: str, position: int) -> int | None:
        """Where to begin so that the message before this position is the first; None: at the beginning."""
        before = self._store.messages(session_id, before=position, limit=2, fates=_SHOWN_FATES, resolve_blobs=False)
        return before[0].membership.position if len(before) > 1 else None

    def _call(self, session_id: str, call: str) -> ToolCallPart:
        found = self._store.tool_calls(ToolCallFilter(session=session_id, call=call), limit=1).items
        if found:
            message = self._store.message(found[0].message_id, session_id=session_id)
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.tool_call_id == call:
                    return part
        raise NotFoundError(f"session {session_id} has no call {call}")

    def _whole_output(self, session_id: str, call: ToolCallPart) -> str:
        for result in reversed(call.results):
            if result.spilled_to is not None:
                try:
                    return self._store.spill(session_id, result.spilled_to).decode(errors="replace")
                except NotFoundError:
                    break
        return output_of(call)


def _budget(max_tokens: int) -> Budget:
    """What a quotation may take of an answer. Raises ValueError if the tokens are out of bounds."""
    budget = Budget(max_tokens)
    budget.take(quote("") + " " * _AFTER)
    return budget


_AFTER: Final = 100
"""Bytes that are kept for the notes after a quotation, such as a cursor."""


def _more(cursor: str | None) -> str:
    return "That is all." if cursor is None else f"More: cursor={cursor!r}"


def _beginning(text: str, budget: Budget) -> str:
    """As much of the text as fits."""
    # `characters` are those of ASCII; others take more bytes, so the piece may still be too long.
    piece = text[: budget.characters]
    while piece and not budget.take(piece):
        piece = piece[: len(piece) * 3 // 4]
    return piece


def _usage_line(row: UsageRow) -> str:
    totals = row.totals
    tokens = "tokens unknown"
    if totals.has_tokens:
        cached = totals.cache_read + totals.cache_write_5m + totals.cache_write_1h + totals.cache_write
        told = f"{cached:,}" if totals.tells_cache else "unknown"
        tokens = f"input {totals.input:,}, cached {told}, output {totals.output:,}"
    return f"{row.label or row.name or 'unknown'}: {totals.calls} calls, {tokens}, {_cost(totals)}"


def _cost(totals: UsageTotals) -> str:
    if totals.cost is not None:
        return f"{'at least ' if totals.unpriced_calls + totals.unknown_calls else ''}${totals.cost:,.2f}"
    return "cost unknown" if totals.reported_cost is None else f"${totals.reported_cost:,.4f} as agents reported it"
