"""The fold of a history: Markdown that grows line by line. Each run of Aider in the folder is a session.

A line of the program or of the user ends with two spaces, which tells it from a quotation or a heading of the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.aider import NAME
from turnlog.agents.aider.contents import counted_in, parts_of
from turnlog.agents.aider.sources import name_of, session_id
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, EventChange, MessageChange, Placement, ResultChange, SessionChange
from turnlog.agents.decoding import LineContext, state_codec
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    ResultStatus,
    RunMetadataEvent,
    SessionTotal,
    TextPart,
    ToolCallPart,
    ToolResult,
    Usage,
)
from turnlog.model.session import title_from

_START = re.compile(r"# aider chat started at (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_USER = re.compile(r"#### (?P<text>.*?)  ")
_STATUS = re.compile(r"> ?(?P<text>.*?)  ")
_FAILED_EDITS = re.compile(r"> (?P<text># \d+ SEARCH/REPLACE blocks? failed to match!)")
_ERROR = re.compile(r"(?:litellm\.)?\w*(?:Error|Exception)\b.*")
_MODEL = re.compile(r"(?:Model|Main model): (?P<model>\S+) with .*")
_VERSION = re.compile(r"Aider v(?P<version>\S+)")
_APPLIED = re.compile(r"Applied edit to (?P<path>.+)")
_COMMANDS = {"/": Origin.COMMAND, "!": Origin.SHELL}
"""How a line of the user begins that Aider runs itself, and that no model is asked about."""

_SHELL_COMMANDS = ("/run", "/git", "/test")

_CLEARED = ("All chat history cleared.", "All files dropped and chat history cleared.")
"""What Aider says when it forgets what was said before, as `/clear` and `/reset` ask for."""

TOTAL = "tokens"
"""The id of the total of a run: there is one."""

_STOPPED = "^C again to exit"

PROMPT, ANSWER, FAILURE = "prompt", "answer", "failure"


class AiderCall(msgspec.Struct):
    """An edit without a result."""

    id: str
    path: str
    message: str


class AiderState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    external: str = ""
    """The run that is being read."""
    at: datetime | None = None
    model: str | None = None
    turn: int = 0
    step: int = 0
    leaf: str | None = None
    is_titled: bool = False
    is_branched: bool = False
    """Whether the history was cleared."""
    role: str = ""
    """Whose text is being read; empty if nobody's."""
    text: str = ""
    began: int = 0
    """Where it began."""
    length: int = 0
    """Bytes of its first line."""
    answer: str | None = None
    """The newest answer, whose tokens may follow."""
    answered: int = 0
    """Where it began."""
    edits: list[AiderCall] = []
    used: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0, 0])
    """Tokens of the run: input without cached ones, read from the cache, written to it, output."""
    counted: int = 0
    """Answers with tokens."""
    cost: float = 0.0


encode_state, decode_state = state_codec(AiderState)


class AiderFold:
    """Reads a history. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._state = decode_state(state) if state is not None else AiderState()
        self._folder = name_of(source)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = _Context(self._state, self._folder)
        position = offset
        for line in data.splitlines(keepends=True):
            self._state.lines += 1
            context.position, context.length, context.line_number = position, len(line), self._state.lines
            context.json = line
            context.read(line)
            position += len(line)
        context.show()
        return context.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


class _Context(LineContext):
    """The context of one feed."""

    def __init__(self, state: AiderState, folder: str) -> None:
        super().__init__(Changes())
        self._state = state
        self._folder = folder

    # -- lines

    def read(self, line: bytes) -> None:
        """Read a line: the beginning of a run, of a prompt or of a status, or a further line of a text."""
        self.report_replaced_bytes()
        text = line.decode(errors="replace").rstrip("\r\n")
        started = _START.fullmatch(text)
        if started is not None:
            self._end_text()
            self._start_run(started["at"])
        elif not self._state.external:
            self._skip(text)
        else:
            self._read_in_run(text)

    def _skip(self, text: str) -> None:
        if text.strip():
            self.report("a line before the first run")
            self.changes.counts.unreadable += 1
        else:
            self.changes.counts.blank += 1

    def _read_in_run(self, text: str) -> None:
        state = self._state
        user, status, failure = _USER.fullmatch(text), _STATUS.fullmatch(text), _FAILED_EDITS.fullmatch(text)
        if state.role == FAILURE:
            self._add_line(text.removesuffix("  "))
            if text.endswith("  "):
                self._end_text()
        elif user is not None:
            self._take_up(PROMPT)
            self._add_line(user["text"])
        elif failure is not None:
            self._take_up(FAILURE)
            self._add_line(failure["text"])
        elif status is not None or text == "> ":
            self._end_text()
            self._read_status(status["text"].strip() if status is not None else "")
        elif text.strip() and not state.turn:
            # Aider repeats its command line, and a prompt there may have several lines. No model has answered yet.
            self._end_text()
            self._add_status(text)
        elif text.strip() or state.role == ANSWER:
            self._take_up(ANSWER)
            self._add_line(text)
        else:
            # A line of a prompt is never blank. The prompt of `/ask` stands again below it.
            self._end_text()
            self.changes.counts.blank += 1

    def _take_up(self, role: str) -> None:
        if self._state.role != role:
            self._end_text()
            self._state.role, self._state.text = role, ""
            self._state.began, self._state.length = self.position, self.length
            self.changes.counts.messages += 1
            if role == PROMPT:
                self._state.turn, self._state.step = self._state.turn + 1, 0
        else:
            # Further lines of the same text are parts of its message.
            self.changes.counts.duplicates += 1

    def _add_line(self, text: str) -> None:
        state = self._state
        if state.role == FAILURE and state.text:
            self.changes.counts.duplicates += 1
        state.text += text + "\n"

    def show(self) -> None:
        """Show what has come of a prompt or an answer so far."""
        if self._state.role == ANSWER:
            self._add_answer()
        elif self._state.role == PROMPT:
            self._add_prompt()
        self._note_branch()

    def _note_branch(self) -> None:
        """Name the newest message where not all messages before it are in the model's context."""
        if self._state.is_branched:
            self._session.has_branches, self._session.active_leaf = True, self._state.leaf or ""

    def _end_text(self) -> None:
        role, self._state.role = self._state.role, ""
        if role:
            _ENDS[role](self)

    # -- runs

    def _start_run(self, at: str) -> None:
        self._note_branch()
        state = self._state
        state.external = f"{self._folder}-{at.replace(' ', 'T').replace(':', '-')}"
        try:
            # The time is that of the clock on the wall, and no line names its zone.
            state.at = datetime.fromisoformat(at).replace(tzinfo=UTC)
        except ValueError:
            state.at = None
        state.turn = state.step = 0
        state.leaf = state.model = state.answer = None
        state.is_titled, state.is_branched, state.edits = False, False, []
        state.used, state.counted, state.cost = [0, 0, 0, 0], 0, 0.0
        change = self._session
        change.first_at = change.last_at = state.at
        self._add_event(RunMetadataEvent(id=f"{state.external}@start", kind="start", created_at=state.at))

    @property
    def _session(self) -> SessionChange:
        identity = session_id(self._state.external)
        change = self.changes.sessions.setdefault(identity, SessionChange(session_id=identity))
        change.position = self.position
        return change

    def _add_event(self, event: HistoryEvent, *, counts: bool = True) -> None:
        placed = msgspec.structs.replace(event, position=self.position)
        self.changes.events.append(
            EventChange(
                session_id=session_id(self._state.external),
                event=placed,
                record=(self.position, self.length),
                parent_id=self._state.leaf,
            )
        )
        self.changes.counts.events += int(counts)

    # -- messages

    def _name(self, position: int) -> str:
        return f"{self._state.external}@{position}"

    def _add(self, message: Message, *, step: int | None = None) -> None:
        state = self._state
        placement = Placement(
            session_id=session_id(state.external),
            position=state.began,
            records=((state.began, state.length, None),),
            record_ids=(message.id,),
            parent_id=state.leaf if state.leaf != message.id else None,
            turn=state.turn or None,
            step=step,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    def end_prompt(self) -> None:
        """Add what the user asked."""
        state = self._state
        title = title_from(state.text.rstrip("\n"))
        if title and not state.is_titled and _origin_of(state.text) is Origin.PROMPT:
            state.is_titled = True
            self._session.titles["prompt"] = title
        state.leaf = self._add_prompt()

    def _add_prompt(self) -> str:
        identity, text = self._name(self._state.began), self._state.text.rstrip("\n")
        origin = _origin_of(text)
        self._add(
            Message(
                id=identity,
                role="user",
                parts=(TextPart(id=f"{identity}.0", text=text),) if text else (),
                origin=origin,
                metadata={NAME: {"command": _command_in(text)}} if origin is not Origin.PROMPT else {},
            )
        )
        return identity

    def end_failure(self) -> None:
        """Add what the program said to the model about edits that could not be made."""
        state, identity = self._state, self._name(self._state.began)
        text = state.text.rstrip("\n")
        self._add(
            Message(
                id=identity,
                role="developer",
                parts=(TextPart(id=f"{identity}.0", text=text),),
                origin=Origin.HARNESS,
            )
        )
        state.leaf = identity
        for edit in state.edits:
            if f"exactly match lines in {edit.path}" in text:
                self._add_result(edit, "error", text)
        state.edits = []

    def _add_answer(self) -> None:
        state, identity = self._state, self._name(self._state.began)
        if state.answer != identity:
            state.step += 1
            state.answer, state.answered, state.edits = identity, state.began, []
        parts = parts_of(state.text, identity)
        message = Message(id=identity, role="assistant", parts=tuple(parts), model=state.model)
        self._add(message, step=state.step)

    def end_answer(self) -> None:
        """Add an answer, and remember its edits."""
        self._add_answer()
        state, identity = self._state, self._name(self._state.began)
        state.leaf = identity
        for part in parts_of(state.text, identity):
            if isinstance(part, ToolCallPart):
                path = part.input_value()["path"]
                state.edits.append(AiderCall(part.tool_call_id, path, identity))

    # -- what the program says

    def _read_status(self, text: str) -> None:
        state = self._state
        counted = counted_in(text)
        if counted is not None and state.answer is not None:
            self._add_counted(state.answer, state.answered, text)
            return
        model, version, applied = _MODEL.fullmatch(text), _VERSION.fullmatch(text), _APPLIED.fullmatch(text)
        if model is not None:
            state.model = model["model"]
        if version is not None:
            self._session.agent_version = version["version"]
        if applied is not None:
            for edit in [edit for edit in state.edits if edit.path == applied["path"]]:
                self._add_result(edit, "success", text)
                state.edits.remove(edit)
        identity = self._name(self.position)
        if _ERROR.fullmatch(text):
            self._add_event(ErrorEvent(id=identity, error_text=text, kind="api"))
        elif text in _CLEARED:
            state.is_branched = True
            self._add_event(CompactionEvent(id=identity, trigger="clear"))
        elif text == _STOPPED:
            self._add_event(InterruptEvent(id=identity, during="answer"))
        else:
            self._add_status(text)

    def _add_status(self, text: str) -> None:
        data = Raw(msgspec.json.encode({"text": text}))
        self._add_event(RunMetadataEvent(id=self._name(self.position), kind="status", data=data))

    def _add_counted(self, answer: str, position: int, text: str) -> None:
        """Add to the total of the run: a sum of answers would not say that their figures are approximate."""
        state, counted = self._state, counted_in(text)
        if counted is None:
            return
        state.used = [one + (other or 0) for one, other in zip(state.used, counted.buckets(), strict=True)]
        state.counted += 1
        state.cost += counted.cost or 0
        sent, read, written, received = state.used
        usage = Usage(
            input=sent, cache_read=read or None, cache_write=written or None, output=received, exactness="estimated"
        )
        self._session.totals[TOTAL] = SessionTotal(model=state.model, usage=usage, calls=state.counted)
        self._session.reported_cost = state.cost or None
        placement = Placement(session_id=session_id(state.external), position=position)
        message = Message(id=answer, role="assistant", metadata={NAME: {"tokens": text}})
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.duplicates += 1
        state.answer = None

    def _add_result(self, edit: AiderCall, status: ResultStatus, text: str) -> None:
        identity = f"{edit.id}.result"
        result = ToolResult(
            id=identity,
            status=status,
            content=(TextPart(id=f"{identity}.0", text=text),),
            error_text=text if status == "error" else None,
        )
        self.changes.results.append(
            ResultChange(
                session_id=session_id(self._state.external),
                tool_call_id=edit.id,
                result=result,
                position=self.position,
                record=(self.position, self.length),
                message_id=edit.message,
            )
        )


def _origin_of(text: str) -> Origin:
    """Whether the user asked the model something, or had Aider do it."""
    if text.partition(" ")[0] in _SHELL_COMMANDS:
        return Origin.SHELL
    return _COMMANDS.get(text[:1], Origin.PROMPT)


def _command_in(text: str) -> dict[str, str]:
    name, _, arguments = ("!", "", text[1:]) if text.startswith("!") else text.partition(" ")
    return {"name": name, "arguments": arguments.strip()}


_ENDS: dict[str, Callable[[_Context], Any]] = {
    PROMPT: _Context.end_prompt,
    ANSWER: _Context.end_answer,
    FAILURE: _Context.end_failure,
}
"""Whose text -> what becomes of it at its end."""
