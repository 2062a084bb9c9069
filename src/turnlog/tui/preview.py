"""A session beside the list: prompts, answers and calls, with the changes of files as diffs.

All text of a log is made plain before it is shown, and none of it is read as Textual's or Rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import UNSET
from rich.text import Text
from textual.widgets import RichLog

from turnlog.formats.edits import edit_diff
from turnlog.formats.labels import DONE, call_outcome, facts, part_label, subject
from turnlog.model import Fate, Message, Part, ReasoningPart, Session, TextPart, ToolCallPart, ToolKind, ToolState
from turnlog.model.message import command_line
from turnlog.plain_text import one_line, plain
from turnlog.store.base import Store
from turnlog.store.rows import TURN_ORIGINS
from turnlog.store.values import PlacedMessage

MESSAGES: Final = 30
"""Messages that are read at once."""

_TEXT_LINES, _DIFF_LINES, _OUTPUT_LINES = 60, 40, 6
"""The most lines of a text, a diff and an output. The page and `turnlog show` have all of it."""

_FACTS = ("Agent", "Folder", "Branch", "Models", "Started", "Duration", "Tokens", "Cost")
_COUNTED = ("Tokens", "Cost")

_SHOWN = (Fate.ACTIVE, Fate.COMPACTED)
_LINE = 400
"""The longest line; one of minified code would fill the screen."""

_PROMPT, _DIM, _TOOL, _BAD, _ADDED, _REMOVED, _MARK = (*("bold cyan", "dim", "bold", "red", "green", "red", "reverse"),)


def read(
    store: Store, session_id: str, *, after: int | None = None, around: int | None = None, last: bool = False
) -> list[PlacedMessage]:
    """Some messages of a session: those from its first prompt on, after a position or around it, or the last ones."""
    bounds: dict[str, int | None] = {"before": 1 << 62} if last else {"around": around} if around else {"after": after}
    found = store.messages(
        session_id, limit=MESSAGES, fates=_SHOWN, structured=(ToolKind.EDIT,), resolve_blobs=False, **bounds
    )
    if after is None and around is None and not last:
        # Agents put pages of instructions before the prompt.
        first = next((n for n, placed in enumerate(found) if placed.message.origin in TURN_ORIGINS), 0)
        if first and all(_is_injected(placed.message) for placed in found[:first]):
            return read(store, session_id, after=found[first - 1].membership.position)
    return found


def _is_injected(message: Message) -> bool:
    """Whether it is context that neither a person typed nor a model said."""
    return message.role in ("developer", "system") or (
        message.role == "user" and message.origin not in (*TURN_ORIGINS, None)
    )


def header(session: Session, resume: str | None) -> list[Text]:
    """The title and facts of a session, in a few lines."""
    # What the long form explains in brackets is left out: a line has no room for it.
    known = {
        name: value.partition(" (")[0].partition(":")[0] if name in _COUNTED else value
        for name, value in facts(session)
    }
    turns = "1 turn" if session.counts.turns == 1 else f"{session.counts.turns:,} turns"
    named = {**known, "Tokens": f"{known.get('Tokens')} tokens", "Cost": f"cost {known.get('Cost')}"}
    words = [named[name] for name in _FACTS if name in known]
    lines = [
        Text(one_line(session.title or "untitled"), "bold"),
        Text(one_line(" · ".join([*words, turns])), _DIM),
        Text(plain(session.id), _DIM),
    ]
    if resume is not None:
        lines.append(Text(f"$ {one_line(resume)}", _DIM))
    return [*lines, Text("")]


def message_lines(placed: PlacedMessage) -> Iterator[Text]:
    """A message: a prompt is marked, injected context is one line."""
    message = placed.message
    if message.origin in TURN_ORIGINS:
        at = "" if message.created_at is None else f"{message.created_at.astimezone():%Y-%m-%d %H:%M:%S}"
        yield Text(f"── turn {placed.membership.turn or ''} · {at} ".ljust(40, "─"), _DIM)
        typed = command_line(message)
        if typed:
            yield Text(f"> {one_line(typed)}", _PROMPT)
            return
    is_injected = _is_injected(message)
    for part in message.parts:
        if is_injected and isinstance(part, TextPart):
            kind = message.origin.value.replace("_", " ") if message.origin else message.role
            yield Text(f"[{kind}] {one_line(part.text, 100)}", _DIM)
        else:
            yield from _part_lines(part, is_prompt=message.role == "user")
    if message.error is not None:
        yield Text(f"error: {one_line(message.error.text)}", _BAD)


def _part_lines(part: Part, *, is_prompt: bool) -> Iterator[Text]:
    match part:
        case TextPart():
            lines = _lines(part.text, _TEXT_LINES)
            yield from (Text(f"{'> ' if is_prompt else ''}{line}", _PROMPT if is_prompt else "") for line in lines)
            yield Text("")
        case ReasoningPart():
            if part.text:
                yield Text(f"∴ {one_line(part.text, 160)}", "dim italic")
        case ToolCallPart():
            yield from _call_lines(part)
        case _:
            note = part_label(part)
            if note is not None:
                yield Text(f"[{one_line(' '.join((note.name, *note.words)))}]", _DIM)


def _call_lines(call: ToolCallPart) -> Iterator[Text]:
    outcome = call_outcome(call, call.results)
    codes = [f"exit {result.exit_code}" for result in call.results if result.exit_code]
    ending = " · ".join([outcome, *codes[-1:]])
    about = one_line(subject(call) or _given(call), 120)
    yield Text.assemble(
        ("• ", _DIM), (one_line(call.tool_name), _TOOL), f" {about}  ", (ending, _DIM if outcome == DONE else _BAD)
    )
    diff = edit_diff(call, call.results)
    if diff is not None:
        yield from (_diff_line(line) for line in _lines(diff, _DIFF_LINES))
    elif call.kind is ToolKind.EXECUTE or call.state is ToolState.OUTPUT_ERROR:
        errors = [result.error_text for result in call.results if result.error_text]
        output = call.output_text or "\n".join(errors)
        yield from (Text(f"  {line}", _DIM) for line in _lines(output.strip(), _OUTPUT_LINES))
    yield Text("")


def _given(call: ToolCallPart) -> str:
    return call.input_text or "" if call.input is UNSET else bytes(call.input).decode(errors="replace")


def _diff_line(line: str) -> Text:
    if line.startswith("+") and not line.startswith("+++"):
        return Text(f"  {line}", _ADDED)
    if line.startswith("-") and not line.startswith("---"):
        return Text(f"  {line}", _REMOVED)
    return Text(f"  {line}", _DIM)


def _lines(text: str, most: int) -> Iterator[str]:
    """The first lines of a text, and how many there are more."""
    if not text:
        return
    lines = plain(text).expandtabs(4).split("\n")
    for line in lines[:most]:
        yield line if len(line) <= _LINE else f"{line[:_LINE]}…"
    if len(lines) > most:
        yield f"… {len(lines) - most:,} more lines"


class Preview(RichLog):
    """A session. It reads on when its end is near."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__(id="preview", wrap=True, markup=False, highlight=False, auto_scroll=False, min_width=20)
        self.session_id: str | None = None
        self.last: int | None = None
        """The position of the last message that is shown; None: nothing follows."""

    def show(
        self,
        session_id: str,
        head: Iterable[Text],
        messages: list[PlacedMessage],
        marks: Iterable[str] = (),
        hit: int | None = None,
    ) -> None:
        """Show a session from its top, or from the first highlighted line from the position `hit` on.

        Words of `marks` are highlighted.
        """
        self.session_id = session_id
        self.clear()
        self.scroll_home(animate=False)
        for line in head:
            self.write(line, scroll_end=False)
        found = self.append(messages, marks, hit)
        if found is not None and found >= self.size.height:
            self.call_after_refresh(self.scroll_to, y=found - self.size.height // 3, animate=False)

    def append(self, messages: list[PlacedMessage], marks: Iterable[str] = (), hit: int | None = None) -> int | None:
        """Show further messages; return the first highlighted line from the message at the position `hit` on."""
        words = [word for word in marks if word.strip()]
        found: int | None = None
        for placed in messages:
            for line in message_lines(placed):
                is_marked = bool(words) and line.highlight_words(words, _MARK, case_sensitive=False) > 0
                if is_marked and found is None and hit is not None and placed.membership.position >= hit:
                    found = len(self.lines)
                self.write(line, scroll_end=False)
        self.last = messages[-1].membership.position if len(messages) >= MESSAGES else None
        return found
