"""The folds of one session: pi's records, each in a line or a row, and what other tables say about the session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import Source
from turnlog.agents.decoding import fields_of, state_codec, text_of, value_of
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.line_fold import LineFold
from turnlog.agents.openclaw.database import EVENTS, NODES, SPAWN, WINDOWS
from turnlog.agents.openclaw.gateway import is_sent, split_prompt
from turnlog.agents.openclaw.row_log import OpenClawRowLine
from turnlog.agents.pi.fold import PiFold, read_record
from turnlog.agents.pi.fold_context import PiContext, PiState
from turnlog.agents.pi.records import LINES, PiMessage, field_of
from turnlog.model import DataPart, Part, TextPart
from turnlog.model.codec import to_json
from turnlog.model.session import title_line

_LINES = JsonLines(OpenClawRowLine, first_keys=("table",), plausible=lambda line: line.table in (EVENTS, WINDOWS))

_WINDOW_FIELDS = ("session_key", "chat_type", "channel", "previous_session_id", "reason", "status", "spawned_by")
"""What is kept of a window in the session's metadata."""

encode_state, decode_state = state_codec(PiState)


class OpenClawContext(PiContext):
    """The context of one feed of pi's records that came through OpenClaw's gateway."""

    def prompt_parts(self, parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], bool]:
        """See `PiContext.prompt_parts`: what the gateway added becomes `data` parts called `context`."""
        if not any(isinstance(part, TextPart) for part in parts):
            return parts, True
        found = [piece for part in parts for piece in _split(part)]
        is_typed = not all(map(_is_context, found)) or any(map(_is_sent, parts))
        # OpenClaw's own prompts stay texts: they are no part of a prompt that somebody wrote.
        return (tuple(_renumbered(found, self.identity)), True) if is_typed else (parts, False)

    def is_own_answer(self, message: PiMessage) -> bool:
        """See `PiContext.is_own_answer`: what was delivered, once more, or what the gateway says itself."""
        if message.provider == "openclaw" and message.model in _OWN_MODELS:
            return True
        kind = field_of(fields_of(self.record.message).get("openclawDeliveryMirror", UNSET), "kind")
        return isinstance(kind, str) and bool(kind)


CONTEXT: Final = "context"
"""The name of a part with what the gateway added to a prompt."""

_OWN_MODELS = frozenset({"delivery-mirror", "gateway-injected"})


def _split(part: Part) -> list[Part]:
    if not isinstance(part, TextPart):
        return [part]
    pieces = split_prompt(part.text)
    if len(pieces) == 1 and not pieces[0].is_added:
        return [part]
    return [
        DataPart(name=CONTEXT, data=Raw(to_json(piece.text)))
        if piece.is_added
        else msgspec.structs.replace(part, text=piece.text)
        for piece in pieces
    ]


def _renumbered(parts: list[Part], identity: str) -> Iterator[Part]:
    """The parts with ids by their numbers, those of the prompt first: context around them does not change their ids."""
    numbers = {
        index: number for number, index in enumerate(sorted(range(len(parts)), key=lambda at: _is_context(parts[at])))
    }
    for index, part in enumerate(parts):
        yield msgspec.structs.replace(part, id=f"{identity}.{numbers[index]}")


def _is_sent(part: Part) -> bool:
    return isinstance(part, TextPart) and is_sent(part.text)


def _is_context(part: Part) -> bool:
    return isinstance(part, DataPart) and part.name == CONTEXT


class OpenClawLogFold(PiFold):
    """Reads an older log, which is a file."""

    def begin(self, data: bytes, offset: int) -> PiContext:
        """See `LineFold.begin`."""
        return OpenClawContext(self._state, self._source)


class OpenClawFold(LineFold[PiState, PiContext, OpenClawRowLine]):
    """Reads one session's rows. The records are pi's, so its state and its context are enough."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else PiState(), encode_state, _LINES)

    def begin(self, data: bytes, offset: int) -> PiContext:
        """See `LineFold.begin`."""
        return OpenClawContext(self._state, self._source)

    def read(self, context: PiContext, record: OpenClawRowLine) -> None:
        """See `LineFold.read`."""
        if record.table == EVENTS:
            self._read_event(context, record)
        elif record.table == WINDOWS:
            _read_facts(context, record)
        else:
            context.report("the line is no row of a session")
            context.changes.counts.unreadable += 1

    def _read_event(self, context: PiContext, line: OpenClawRowLine) -> None:
        # `text` holds a record that is no JSON or has several lines; it is read, and reported, like a damaged line of
        # pi's logs.
        json = bytes(line.event) if line.text is None else line.text.encode()
        context.json = json
        found = LINES.decode(json)
        if isinstance(found, str):
            context.report(found)
            context.changes.counts.unreadable += 1
            return
        for problem in found.problems:
            context.report(problem.reason, problem.severity, problem.json_path)
        context.json = found.json
        read_record(context, found.record, self._source)


def _read_facts(context: PiContext, line: OpenClawRowLine) -> None:
    """Read what other tables say about the session: its title, and the channel that its messages come from."""
    tables = fields_of(line.facts)
    window, node = (_values(tables.get(name)) for name in (WINDOWS, NODES))
    change = context.session
    title = title_line(str(node.get("label") or node.get("display_name") or window.get("display_name") or ""))
    # Of a session that nobody named, the end of its key is shown.
    if title and not str(window.get("session_key", "")).endswith(title):
        change.titles["custom"] = title
    known = {name: window[name] for name in _WINDOW_FIELDS if name in window}
    # `_WINDOW_FIELDS` has the columns of a window; a node has these two besides.
    known |= {name: node[name] for name in ("created_via", "parent_session_key") if name in node}
    if known:
        change.metadata[context.agent] = known
    spawn = _values(tables.get(SPAWN))
    if spawn.get("session_id"):
        # The id of the parent in the model ends as this one does: both are sessions of one of OpenClaw's agents.
        _, separator, owner = context.session_id.partition("@")
        context.link("subagent", f"{spawn['session_id']}{separator}{owner}", tool_call_id=text_of(spawn.get("call")))
    # The line is read but is no event of the conversation; counting it keeps the sum of counts equal to the number of
    # lines.
    context.changes.counts.events += 1


def _values(row: Raw | None) -> dict[str, Any]:
    return {} if row is None else {name: value_of(value) for name, value in fields_of(row).items()}
