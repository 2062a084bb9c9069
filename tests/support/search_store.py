"""A store with its search database, for tests: plain logs that are read, indexed and searched."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.model import Message, Part, TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.store.search.base import Hit, SearchFilter, SearchPage, SearchSort, search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher

STATES = {
    "success": ToolState.OUTPUT_AVAILABLE,
    "error": ToolState.OUTPUT_ERROR,
    "denied": ToolState.OUTPUT_DENIED,
    "aborted": ToolState.ABORTED,
}


class SearchStore:
    """Everything of one store in one folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.path = folder / "turnlog.db"
        self.search_path = search_path(self.path)

    def log(self, name: str = "one", cwd: str | None = None) -> Log:
        """The log of a session, begun in a folder if one is given."""
        log = Log(self.home, name)
        if cwd is not None:
            log.session(project_path=cwd, cwd=cwd)
        return log

    def read(self) -> None:
        """Bring the store up to date, and leave the index behind."""
        read_home(self.path, self.home)

    def index(self) -> int:
        """Bring both up to date; how many messages were indexed."""
        self.read()
        with Indexer(self.path, self.search_path) as indexer:
            return indexer.catch_up()

    def search(
        self,
        query: str,
        *,
        sort: SearchSort = "newest",
        limit: int = 1000,
        cursor: str | None = None,
        **filters: Any,
    ) -> SearchPage:
        with Searcher(self.path, self.search_path) as searcher:
            return searcher.search(query, SearchFilter(**filters), sort=sort, limit=limit, cursor=cursor)

    def hits(self, query: str, **filters: Any) -> tuple[Hit, ...]:
        return self.search(query, **filters).hits

    def found(self, query: str, **filters: Any) -> list[str]:
        """Ids of the messages in which a query is found, newest first."""
        return [hit.message_id for hit in self.hits(query, **filters)]

    def fields(self, query: str, **filters: Any) -> list[tuple[int, str]]:
        """Parts and fields in which a query is found, the last first."""
        return [(hit.part, hit.field) for hit in self.hits(query, **filters)]


def text_message(
    id: str, *texts: str, minutes: float | None = 0, role: Any = "user", parts: Iterable[Part] = ()
) -> Message:
    """A message of texts, and of other parts behind them, so many minutes after the start of the tests' history."""
    created_at: datetime | None = None if minutes is None else at(minutes)
    return Message(id=id, role=role, created_at=created_at, parts=(*[TextPart(text=text) for text in texts], *parts))


def call(
    id: str, output: str | ToolResult | None = None, *, tool: str = "Bash", status: Any = "success", **input: Any
) -> ToolCallPart:
    """A tool call, answered with `output` if that is given."""
    results: tuple[ToolResult, ...] = ()
    if isinstance(output, ToolResult):
        results = (output,)
    elif output is not None:
        results = (result(f"{id}.r", output, status),)
    return ToolCallPart(
        tool_call_id=id,
        tool_name=tool,
        kind=ToolKind.EXECUTE,
        input=msgspec.Raw(msgspec.json.encode(input)),
        state=STATES[results[0].status] if results else ToolState.INPUT_AVAILABLE,
        results=results,
    )


def result(id: str, text: str, status: Any = "success", **more: Any) -> ToolResult:
    return ToolResult(id=id, status=status, content=(TextPart(text=text),) if text else (), **more)
