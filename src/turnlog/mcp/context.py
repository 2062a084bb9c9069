"""What a new session should know of earlier ones: a page of Markdown that fits into a number of tokens.

It is made from the store alone, without a model: the same store gives the same page. What does not fit is left out from
the end of a section, and the page says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from turnlog.mcp.budget import Budget, clean, clean_line, clean_title, quote
from turnlog.mcp.messages import moment
from turnlog.model import Fate, Message, Session, TextPart, ToolCallPart, ToolKind, ToolState
from turnlog.model.message import UNCALLED_ORIGINS
from turnlog.model.parts import call_summary
from turnlog.plain_text import one_line
from turnlog.redact import KnownValues
from turnlog.store.base import FileFilter, SessionFilter, Store, ToolCallFilter
from turnlog.store.rows import PREVIEW_LENGTH
from turnlog.store.session_secrets import SessionSecrets

DEFAULT_TOKENS: Final = 2_000

_SESSIONS, _FILES, _TOUCHES = 30, 10, 6
"""The most sessions, most edited files, and calls of one file that a page lists."""

_ANSWERS = 10
"""The most answers to questions that a page lists."""

_FILES_OF_A_SESSION = 4

_PROMPT_CHARACTERS, _ANSWER_CHARACTERS = 200, 400

_END: Final = 1 << 62
"""After every position."""

_LAST_MESSAGES = 40
"""Messages among which a session's last answer is looked for."""


class Subject(NamedTuple):
    """What the page is about."""

    project: str
    """The path of a project."""
    files: Sequence[str] = ()
    """Paths of files whose history is in it."""


def project_context(
    store: Store, subject: Subject, *, max_tokens: int = DEFAULT_TOKENS, is_redacted: bool = True
) -> str:
    """The page of a project: its files that were asked for, decisions, its newest sessions, its most edited files.

    Raises ValueError if `max_tokens` is out of bounds.
    """
    budget = Budget(max_tokens)
    words = _Words(store, is_redacted, {})
    heading = f"# Earlier work in {one_line(Path(subject.project).name or subject.project)}"
    budget.take(quote(heading))
    sections = [
        _Section(f"## {_relative(path, subject.project)}", list(_touches(words, subject.project, path)))
        for path in subject.files
    ]
    decisions = _Section("## Decisions", list(_decisions(words, subject.project)))
    files = _Section("## Files edited most", list(_edited_files(store, subject.project)))
    sessions = _Section("## Newest sessions", _sessions(words, subject.project))
    # Decisions and files are few lines: they are counted first, so that long sessions do not take their place.
    written = [section.fitting(budget, is_redacted) for section in (*sections, decisions, files, sessions)]
    ordered = [*written[:-2], written[-1], written[-2]]
    lines = [line for section in ordered for line in section]
    return quote("\n".join([heading, *(lines or ["", "No earlier session was read."])]))


class _Section(NamedTuple):
    heading: str
    entries: Iterable[str]

    def fitting(self, budget: Budget, is_redacted: bool) -> list[str]:
        """The lines of the section, as far as they fit; none if no entry does."""
        lines: list[str] = []
        for entry in self.entries:
            text = clean(entry, redacted=is_redacted)
            if not budget.take(text if lines else f"\n{self.heading}\n{text}"):
                return [*lines, "- …"] if lines else []
            lines += [text] if lines else ["", self.heading, text]
        return lines


class _Words(NamedTuple):
    """What sessions said, shortened; without secrets, if wanted, before it is."""

    store: Store
    is_redacted: bool
    known: dict[str, KnownValues]
    """Session -> its secrets, of those that were quoted."""

    def line(self, text: str, limit: int, session: Session, *, is_cut: bool = False) -> str:
        return clean_line(text, limit, redacted=self.is_redacted, is_cut=is_cut, known=self._secrets_of(session))

    def preview(self, text: str, limit: int, session: Session) -> str:
        """A text of an outline, which has the beginning of a message only."""
        return self.line(text, limit, session, is_cut=len(text) >= PREVIEW_LENGTH - 1)

    def title(self, session: Session, limit: int) -> str:
        return clean_title(session.title, limit, redacted=self.is_redacted, known=self._secrets_of(session))

    def _secrets_of(self, session: Session) -> KnownValues | None:
        if not self.is_redacted:
            return None
        if session.id not in self.known:
            self.known[session.id] = SessionSecrets(self.store, session).known
        return self.known[session.id]

    def name(self, session: Session) -> str:
        return f"**{self.title(session, 80)}** (`{session.id}`)"

    def prompt_before(self, session: Session, position: int) -> str | None:
        """The prompt that led to a position, in one line; only what is still part of the conversation."""
        prompts = [
            entry.text
            for entry in self.store.outline(session.id)
            if entry.kind == "prompt" and entry.position <= position and entry.fate in (Fate.ACTIVE, Fate.COMPACTED)
        ]
        return self.preview(prompts[-1], _PROMPT_CHARACTERS, session) if prompts else None

    def last_answer(self, session: Session) -> str | None:
        """What the model said last; an agent's notice of a limit or an error stands in the place of an answer."""
        messages = self.store.messages(
            session.id, before=_END, limit=_LAST_MESSAGES, fates=(Fate.ACTIVE, Fate.COMPACTED), resolve_blobs=False
        )
        for placed in reversed(messages):
            if not _is_answer(placed.message):
                continue
            parts = [part for part in placed.message.parts if isinstance(part, TextPart) and part.text.strip()]
            if parts:
                return self.line(parts[-1].text, _ANSWER_CHARACTERS, session, is_cut=parts[-1].blob is not None)
        return None


def _touches(words: _Words, project: str, path: str) -> Iterator[str]:
    store = words.store
    history = store.file_history(path, limit=_TOUCHES)
    for touch in history.touches.items:
        call = touch.call
        session = store.session(call.session_id)
        # Sessions of other projects may have touched the file, but an agent sees its own project only.
        if session.project is not None and session.project.path != project:
            continue
        what = f"{one_line(call.tool_name)} ({call.kind}, {call.state})"
        yield f"- {moment(call.started_at) or 'unknown time'} {what} in {words.name(session)}"
        prompt = words.prompt_before(session, call.position)
        if prompt:
            yield f"  - asked: {prompt}"


def _sessions(words: _Words, project: str) -> Iterator[str]:
    store = words.store
    for session in store.sessions(SessionFilter(project=project), limit=_SESSIONS).items:
        facts = [
            moment(session.updated_at),
            session.agent,
            f"branch {one_line(session.git_branch)}" if session.git_branch else None,
            _count(session.counts.turns, "turn"),
            f"`{session.id}`",
        ]
        lines = [f"- **{words.title(session, 120)}** ({', '.join(fact for fact in facts if fact)})"]
        prompt = words.prompt_before(session, _END)
        if prompt and prompt != words.title(session, _PROMPT_CHARACTERS):
            lines.append(f"  - asked last: {prompt}")
        answered = words.last_answer(session)
        if answered:
            lines.append(f"  - answered last: {answered}")
        changed = store.touched_files(FileFilter(session=session.id, changed=True), limit=_FILES_OF_A_SESSION + 1)
        if changed:
            names = [_relative(file.path, project) for file in changed[:_FILES_OF_A_SESSION]]
            more = " and more" if len(changed) > _FILES_OF_A_SESSION else ""
            lines.append(f"  - edited: {', '.join(names)}{more}")
        yield "\n".join(lines)


def _decisions(words: _Words, project: str) -> Iterator[str]:
    """What the user has said on record: answers to questions of agents, notes on sessions, pinned messages."""
    store = words.store
    wanted = ToolCallFilter(kind=ToolKind.ASK, state=ToolState.OUTPUT_AVAILABLE, project=project)
    for call in store.tool_calls(wanted, limit=_ANSWERS).items:
        message = store.message(call.message_id, session_id=call.session_id)
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.tool_call_id == call.tool_call_id and part.output_text.strip():
                summary, session = call_summary(part), store.session(call.session_id)
                question = f"{words.line(summary, _PROMPT_CHARACTERS, session)} → " if summary else ""
                answer = words.line(part.output_text, _ANSWER_CHARACTERS, session)
                name = words.name(session)
                yield f"- {moment(call.started_at) or 'unknown time'} {question}{answer} in {name}"
    sessions = store.sessions(SessionFilter(project=project), limit=_SESSIONS).items
    annotations = store.annotations([session.id for session in sessions])
    for session in sessions:
        known = annotations.get(session.id)
        if known is None:
            continue
        if known.note:
            yield f"- noted: {words.line(known.note, _ANSWER_CHARACTERS, session)} on {words.name(session)}"
        if known.pins:
            for entry in store.outline(session.id):
                if entry.kind == "pin":
                    yield f"- pinned: {words.preview(entry.text, _ANSWER_CHARACTERS, session)} in {words.name(session)}"


def _edited_files(store: Store, project: str) -> Iterator[str]:
    found = store.touched_files(FileFilter(project=project, changed=True))
    found.sort(key=lambda file: (-file.edits, file.path))
    for file in found[:_FILES]:
        edits, sessions = _count(file.edits, "edit"), _count(file.sessions, "session")
        yield f"- {_relative(file.path, project)}: {edits} in {sessions}, last {moment(file.last_at) or 'unknown'}"


def _is_answer(message: Message) -> bool:
    return message.role == "assistant" and message.error is None and message.origin not in UNCALLED_ORIGINS


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _relative(path: str, project: str) -> str:
    return one_line(os.path.relpath(path, project) if Path(project) in Path(path).parents else path)
