"""`plan`: a hand-over before it happens, with everything that it would write and lose; `HandoffPlan.write` does it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Agent
from turnlog.agents.commands import resume_command
from turnlog.agents.handoffs import HandoffConversation, NewSession
from turnlog.errors import HandoffError
from turnlog.handoff.conversation import Converted, Reasoning, convert
from turnlog.handoff.report import HandoffLoss, LossSummary, summary_of
from turnlog.handoff.targets import Target, home_of, target_agent, targets, writer_of
from turnlog.handoff.transcripts import transcript_of
from turnlog.handoff.windows import Window, begins_turn, cut_to_tokens, select, tokens_of
from turnlog.model import BlobRef, Message, Session, ToolCallPart
from turnlog.plain_text import one_line
from turnlog.store.base import DiagnosticFilter, Store
from turnlog.store.session_state import session_state

ACTIVE_BRANCH: Final = Window()

_SHORT_ID: Final = 8
"""Of an id, Gemini CLI has so many characters in the names of files."""


class HandoffPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A session as another agent will find it. Nothing is written yet."""

    session: Session
    """The one that is handed over."""
    target: Target
    losses: tuple[HandoffLoss, ...]
    """What is not carried, or otherwise, item by item."""
    notes: tuple[str, ...]
    """What else the user should know, in sentences."""
    messages: int
    turns: int
    tool_calls: int
    tokens: int
    """An estimate."""
    conversation: HandoffConversation
    new: NewSession
    folder: Path
    """Where to start the agent."""
    command: tuple[str, ...]
    """What goes on with the new session in a terminal."""
    refusal: str | None = None
    """Why it is not written here: the agent is not installed, or has never run."""

    @property
    def session_id(self) -> str:
        """The id of the new session in the store, once it was read."""
        return f"{self.target.name}:{self.new.external_id}"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are written, or the database that gets the session."""
        return self.new.paths

    @property
    def places(self) -> tuple[Path, ...]:
        """The same without the new id: the folder of a file whose name has it. Another plan has another id."""
        beginning = self.new.external_id[:_SHORT_ID]
        return tuple(path.parent if beginning in path.name else path for path in self.paths)

    @property
    def summary(self) -> list[LossSummary]:
        """The losses by kind."""
        return summary_of(self.losses)

    def write(self) -> str:
        """Write the new session, all or nothing; return `session_id`.

        Raises HandoffError if it is there already or cannot be written, or for `refusal`.
        """
        if self.refusal is not None:
            raise HandoffError(self.refusal)
        try:
            self.new.save()
        except FileExistsError as error:
            where = error.filename or self.paths[-1]
            raise HandoffError(f"nothing was written: there is a session at {where}") from None
        except OSError as error:
            where = error.filename or self.paths[-1]
            raise HandoffError(f"nothing was written: {where} cannot be written ({error.strerror or error})") from None
        return self.session_id


def plan(
    store: Store,
    session_id: str,
    target: str,
    *,
    window: Window = ACTIVE_BRANCH,
    reasoning: Reasoning = "omit",
    subagents: bool = False,
    folder: Path | None = None,
    home: Path | None = None,
    now: datetime | None = None,
) -> HandoffPlan:
    """Plan to hand a session to an agent, in a window of its messages. Nothing is written.

    Args:
        store: Where the session is.
        session_id: The session.
        target: Name of the agent, as `targets` lists them.
        window: Which messages.
        reasoning: `text` carries reasoning as text.
        subagents: Carry transcripts of subagents, as text after the results of their calls.
        folder: Where the new session works; by default where the old one did.
        home: The agent's home; by default the user's.
        now: The time of the hand-over.

    Raises NotFoundError for a session that is not stored, HandoffError if it has nothing to hand over, or the agent
    cannot take it. An agent that is not installed or has never run is only noted: `HandoffPlan.write` refuses it.
    """
    agent = target_agent(target)
    found = next(each for each in targets() if each.name == agent.name)
    refusal = _not_installed(agent) if not found.is_installed and home is None else None
    session = store.session(session_id)
    work = (folder or Path(session.cwd or Path.cwd())).absolute()
    if not work.is_dir():
        if folder is not None:
            raise HandoffError(f"there is no folder {work}")
        raise HandoffError(f"the folder of the session is gone: {one_line(str(work))}; name another one with --folder")
    selection = select(store, session.id, window)
    converted = _convert(store, selection.messages, agent, reasoning, subagents=subagents)
    # After converting: what the target does not get needs no room.
    kept = cut_to_tokens(converted.messages, window.tokens)
    if not any(message.role == "assistant" or message.parts for message in kept.messages):
        raise HandoffError(f"{session.id} has no messages that could be handed over")
    conversation = HandoffConversation(
        origin=session.id,
        at=now or datetime.now(UTC),
        title=session.title,
        folder=work,
        git_branch=session.git_branch,
        git_commit=session.git_commit,
        messages=kept.messages,
    )
    new = writer_of(agent).write(conversation, home or home_of(agent))
    # A home that the agent has never made is the consequence of a missing program.
    refusal = refusal or new.refusal
    form = agent.command
    return HandoffPlan(
        session=session,
        target=found,
        losses=_of_messages(converted.losses, selection.messages, kept.messages),
        notes=(*([refusal] if refusal else []), *selection.notes, *kept.notes, *_notes(store, session)),
        messages=len(kept.messages),
        turns=sum(map(begins_turn, kept.messages)),
        tool_calls=sum(isinstance(part, ToolCallPart) for message in kept.messages for part in message.parts),
        tokens=sum(map(tokens_of, kept.messages)),
        conversation=conversation,
        new=new,
        folder=work,
        command=tuple((resume_command(form, new.external_id) if form else None) or ()),
        refusal=refusal,
    )


def _not_installed(agent: Agent) -> str:
    program = agent.command.program if agent.command else agent.name
    return f"{agent.display_name} is not installed here: there is no program {program!r}"


def _convert(
    store: Store, messages: tuple[Message, ...], agent: Agent, reasoning: Reasoning, *, subagents: bool
) -> Converted:
    def load(blob: BlobRef) -> bytes:
        return store.blob(blob.sha256).data

    transcript: Callable[[str], str] | None = (lambda child: transcript_of(store, child)) if subagents else None
    return convert(messages, writer_of(agent), load, reasoning=reasoning, transcript=transcript)


def _of_messages(
    losses: tuple[HandoffLoss, ...], selected: tuple[Message, ...], kept: tuple[Message, ...]
) -> tuple[HandoffLoss, ...]:
    """The losses of what is handed over: none of messages that the window cut from the front."""
    if not kept:
        return losses
    ids = [message.id for message in selected]
    first = ids.index(kept[0].id) if kept[0].id in ids else 0
    cut = set(ids[:first])
    return tuple(loss for loss in losses if loss.message_id not in cut)


def _notes(store: Store, session: Session) -> list[str]:
    notes: list[str] = []
    state = session_state(store.turn_facts([session.id])[session.id], None, datetime.now(UTC))
    if state.state in ("running", "waiting"):
        notes.append("the session is still running: later messages are not carried")
    # By file: that of an imported session belongs to no session, since it may hold several.
    paths = [source.path for source in store.sources(session.id)]
    found = [store.diagnostics(DiagnosticFilter(path=path, severity="error"), limit=1) for path in paths]
    damaged = sum(page.total or 0 for page in found)
    if damaged:
        records = "1 record" if damaged == 1 else f"{damaged:,} records"
        notes.append(f"{records} of its log could not be read completely: their content may be missing")
    return notes
