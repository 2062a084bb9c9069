"""Sessions, projects, and how sessions relate to each other."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from turnlog.arguments import check_fields
from turnlog.model.base import NamedFields, Value
from turnlog.model.usage import Cost, SessionTotal, UsageTotal

RelationshipKind = Literal["subagent", "fork", "continuation"]


class Relationship(Value, frozen=True, kw_only=True):
    """That a session came out of another.

    `subagent`: started by a tool call of the parent. `fork`: shares the parent's history up to a message and goes
    its own way. `continuation`: continues where the parent ended, in its own file.
    """

    kind: RelationshipKind
    parent_session_id: str
    parent_tool_call_id: str | None = None
    parent_message_id: str | None = None
    inferred: bool = False
    """True when no record says so and shared messages show it."""


class Project(Value, frozen=True, kw_only=True):
    """A working directory that sessions belong to."""

    path: str
    name: str


class Ownership(Value, frozen=True, kw_only=True, metaclass=NamedFields):
    """Whose session it is; all None on one's own machine."""

    user: str | None = None
    team: str | None = None
    task: str | None = None
    machine: str | None = None

    def __post_init__(self) -> None:
        """Raise TypeError for a field of the wrong type."""
        check_fields(self)


class SessionCounts(Value, frozen=True, kw_only=True):
    """What a session holds, by its memberships: copies in forks included, superseded messages not."""

    messages: int = 0
    prompts: int = 0
    turns: int = 0
    steps: int = 0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    """Calls that ended in an error; one that was denied or aborted has not failed."""
    reasoning_parts: int = 0
    files: int = 0
    events: int = 0
    diagnostics: int = 0


TitleSource = Literal["user", "custom", "generated", "summary", "prompt", "opening"]
"""Where a title is from, the one that counts first. `opening`: what a session without any prompt began with, a command,
a notification or another agent's message."""

_TITLE_LENGTH = 200
_TITLE_SEARCHED = 10_000
"""Characters of a text that its title is looked for in: a prompt may be a whole file."""


def title_from(text: str) -> str:
    """The title that a prompt gives to a session: its first meaningful words (`first_words`) as by `title_line`."""
    from turnlog.model.titles import first_words

    return title_line(first_words(text[:_TITLE_SEARCHED]))


def title_given(text: str) -> str:
    """The title that an agent or a model gives to a session, without quotation marks around it, as by `title_line`."""
    from turnlog.model.titles import unquoted

    return title_line(unquoted(text))


def title_line(text: str) -> str:
    """A text as a title: one line of at most 200 characters, an ellipsis last where more followed.

    Empty for a text without words.
    """
    # Imported here because its patterns take long to compile, and few who import the model make titles.
    from turnlog.plain_text import one_line

    line = one_line(text[:_TITLE_SEARCHED])
    return line if len(line) <= _TITLE_LENGTH else f"{line[: _TITLE_LENGTH - 1].rstrip()}…"


def is_cut_title(title: str) -> bool:
    """Whether more may have followed: the title is as long as one can be, or ends with an ellipsis."""
    # Titles that an older version stored have no ellipsis, and no blank at the cut.
    return len(title) >= _TITLE_LENGTH - 1 or title.endswith(("…", "..."))


class Session(Value, frozen=True, kw_only=True):
    """One run's history. `id` is `<agent>:<external id>` and holds no `/`."""

    id: str
    agent: str
    external_id: str
    title: str | None = None
    title_source: TitleSource | None = None
    project: Project | None = None
    cwd: str | None = None
    worktree: str | None = None
    """The git worktree of its project in which it ran; None: in none."""
    git_branch: str | None = None
    git_commit: str | None = None
    agent_version: str | None = None
    """The newest version of the agent that wrote to this session."""
    models: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    relationships: tuple[Relationship, ...] = ()
    ownership: Ownership = Ownership()
    native: bool = False
    """Written through our own API; never remade from logs."""
    counts: SessionCounts = SessionCounts()
    usage: UsageTotal = UsageTotal()
    totals: tuple[SessionTotal, ...] = ()
    """What the log counts for the session as a whole, in place of its calls; `usage` contains it."""
    cost: Cost | None = None
    """Priced from the usage that is billed to this session; None if no call could be priced."""
    unpriced_calls: int = 0
    """Model calls whose cost is unknown and not in `cost`."""
    reported_cost: Cost | None = None
    """The agent's own total (it may contain helper calls that no log shows)."""
    metadata: dict[str, Any] = {}
