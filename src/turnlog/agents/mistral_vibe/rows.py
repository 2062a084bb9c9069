"""The rows of a session: what its entries, its context and its journal say together, one row a prompt or answer.

An entry of the history has an id and a time, but not the id of the call that the model made. The context has that, but
no ids and times. Which belong together is known where the journal still has the call of the model, or an earlier row
says so; otherwise texts and contents are compared, from the newest turn back. What even that does not show is guessed
from the times of the calls, and marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.decoding import Count, list_of, object_of, text_of
from turnlog.agents.file_rows import FileRow
from turnlog.agents.mistral_vibe.store import Completion, Json, VibeSession, texts_of

PROMPT, ANSWER, COMPACTION, OTHER = "prompt", "answer", "compaction", "other"
TURN, SESSION, FILE = "turn", "session", "file"
KINDS = frozenset({PROMPT, ANSWER, COMPACTION, OTHER, TURN, SESSION, FILE})
"""Kinds of rows."""

_SHOWN = re.compile(r"(?:reasoning|assistant)-(?P<action>[0-9a-f-]{36})(?:-\d+)?")
"""The id of an entry that a call of the model wrote."""

_EFFECT = "effect-"

_PROGRAM = re.compile(r"typescript:\d+:(?P<call>[^:]+):.*")
"""The id of a call that a program of the model made, with the call that ran the program."""

PROGRAM_TOOL = "run_typescript"

_OTHER_NAMES = {"edit": "search_replace"}
"""Name of a tool for the model -> the last part of its name in an entry."""

_SPREAD = 1024
"""Positions within one millisecond."""

_GAP = 16
"""Positions between two rows, for answers without an entry."""


Position = Annotated[int, msgspec.Meta(ge=0, lt=HOOKED_FROM)]


class VibeCall(msgspec.Struct, omit_defaults=True):
    """A call of a tool: as the model made it, and as the history shows it. Either may be unknown."""

    id: str = ""
    name: str = ""
    arguments: str | None = None
    """The input as the model wrote it."""
    effect: Json | None = None
    output: str | None = None
    """What the model read, where there is no entry."""
    failed: bool = False
    program: str | None = None
    """The call whose program made this one."""


class VibeRow(msgspec.Struct, omit_defaults=True):
    """A row. Every field has a default, because a damaged line may lack any."""

    row: str = ""
    id: str = ""
    position: Position = 0
    turn: Count = 0
    step: Count = 0
    parent: str | None = None
    """The prompt or answer before it."""
    entries: list[Json] = []
    calls: list[VibeCall] = []
    finish: str | None = None
    at: float | None = None
    """When the model ended an answer, in Unix milliseconds."""
    usage: Json | None = None
    model: str | None = None
    guessed: bool = False
    """Which answer the calls belong to was guessed."""
    text: str | None = None
    """Of a compaction: its summary."""
    facts: Json = {}
    file: FileRow | None = None


class _Owned(NamedTuple):
    """The answer that an effect belongs to, and the call."""

    answer: str
    call: VibeCall


def rows_of(session: VibeSession, known: Mapping[str, VibeRow]) -> list[VibeRow]:
    """The rows of a session; what is known of one from earlier stays known."""
    return [_with_known(row, known.get(row.id)) for row in _Building(session, known).rows()]


def _with_known(row: VibeRow, before: VibeRow | None) -> VibeRow:
    if before is None or before.row != row.row:
        return row
    row.usage, row.finish, row.model = row.usage or before.usage, row.finish or before.finish, before.model or row.model
    row.text, row.at = row.text or before.text, row.at or before.at
    calls = {call.id: call for call in before.calls}
    for call in row.calls:
        earlier = calls.pop(call.id, None)
        if earlier is not None:
            call.name, call.arguments = call.name or earlier.name, call.arguments or earlier.arguments
            call.output, call.program = call.output or earlier.output, call.program or earlier.program
    # Calls without an entry are only in the context, which a compaction shortens. One that had the id of its entry has
    # its own now, because the context could not be read then.
    shown = {text_of(object_of(call.effect).get("id")) for call in row.calls}
    row.calls += [call for call in calls.values() if call.id not in shown]
    return row


class _Building:
    """The rows of one session, while they are put together."""

    def __init__(self, session: VibeSession, known: Mapping[str, VibeRow]) -> None:
        self._session = session
        self._external = session.name
        self._model = self._find_model()
        self._completions = {each.action: each for each in session.completions}
        self._rows: dict[str, VibeRow] = {}
        self._position = self._turn = self._step = 0
        self._current: VibeRow | None = None
        self._owned = _owned_by(known.values())
        self._without_entry: dict[str, list[VibeCall]] = {}
        self._before: dict[str, str] = {}
        """Answer -> the answer or prompt before it."""
        self._order: dict[str, int] = {}
        """Call -> its place among all of them."""
        for matched in _matched(session):
            self._own(matched)
        self._own_journaled()

    def _find_model(self) -> str | None:
        """The model of the session; of a subagent that of its parent, whose settings it has."""
        for metadata in (self._session.metadata, self._session.parent):
            name = text_of(object_of(metadata.get("config")).get("model_name"))
            if name is not None:
                return name
        if not self._session.metadata:
            return None  # They are written with the session: they are damaged, or not copied yet.
        # 2.26 only has the name that the settings give to the model.
        return text_of(object_of(self._session.identity.get("metadata")).get("active_model"))

    def _own(self, matched: _Matched) -> None:
        self._before.setdefault(matched.answer, matched.before)
        for call, effect in matched.calls:
            self._order.setdefault(call.id, len(self._order))
            if effect is not None:
                self._owned[effect] = _Owned(matched.answer, call)
            elif all(each.id != call.id for each in self._without_entry.get(matched.answer, ())):
                self._without_entry.setdefault(matched.answer, []).append(call)

    def _own_journaled(self) -> None:
        effects = {call: f"{_EFFECT}{action}" for action, call in self._session.calls.items()}
        newest = {
            text_of(entry.get("turnId")) or "": text_of(entry.get("id")) or ""
            for entry in self._session.entries
            if is_prompt(entry)
        }
        for completion in self._session.completions:
            made = _calls_of(completion)
            answer = self._answer_id(completion, made)
            self._own(
                _Matched(answer, newest.get(completion.turn, ""), [(call, effects.get(call.id)) for call in made])
            )
            newest[completion.turn] = answer

    def _answer_id(self, completion: Completion, calls: Sequence[VibeCall]) -> str:
        has_entry = any(part.get("type") != "tool_call" for part in _parts(completion))
        return completion.action if has_entry or not calls else calls[0].id

    def rows(self) -> Iterator[VibeRow]:
        """Every row, those of the conversation in its order."""
        for entry in self._session.entries:
            self._read(entry)
        self._add_calls_without_entry()
        self._add_usage()
        parent: str | None = None
        for row in sorted(self._rows.values(), key=_position_of):
            row.parent = parent
            parent = row.id if row.row in (PROMPT, ANSWER) else parent
            yield row
        yield from self._turn_rows()
        yield self._session_row()

    def _read(self, entry: Json) -> None:
        identity, kind = text_of(entry.get("id")) or "", entry.get("type")
        shown = _SHOWN.fullmatch(identity)
        if kind in ("reasoning", "message") and shown is not None:
            self._answer(shown["action"], entry).entries.append(entry)
        elif kind == "effect":
            self._read_effect(identity, entry)
        elif is_prompt(entry):
            self._turn, self._step = self._turn + 1, 0
            self._add(PROMPT, identity, entry)
        elif kind == "message":
            self._answer(identity, entry).entries.append(entry)
        else:
            self._add(COMPACTION if entry.get("kind") == COMPACTION else OTHER, identity, entry)

    def _add(self, row: str, identity: str, entry: Json) -> None:
        self._current = None
        found = self._place(row, identity, entry.get("createdAt"))
        found.entries = [entry]
        if row == COMPACTION:
            completion = self._completions.get(identity.removeprefix("checkpoint-compaction-"))
            found.text = texts_of(completion.result.get("parts")) or None if completion is not None else None

    def _place(self, row: str, identity: str, at: object) -> VibeRow:
        began = position_at(at) if isinstance(at, int | float) else 0
        # A clock may go back between two runs, the order of the entries does not.
        self._position = max(self._position + _GAP, began)
        found = VibeRow(
            row=row, id=f"{self._external}.{identity}", position=self._position, turn=self._turn, step=self._step
        )
        self._rows[identity] = found
        return found

    def _answer(self, identity: str, entry: Json) -> VibeRow:
        found = self._rows.get(identity)
        if found is None:
            self._step += 1
            found = self._place(ANSWER, identity, entry.get("createdAt"))
            found.model = self._model
            # Calls without an entry are in the order in which the model made them.
            found.calls = list(self._without_entry.pop(identity, ()))
        self._current = found
        return found

    def _read_effect(self, identity: str, entry: Json) -> None:
        program = _PROGRAM.fullmatch(self._call_id(identity, entry) or "")
        owned = self._owned.get(identity)
        if owned is not None:
            answer, call = self._answer(owned.answer, entry), owned.call
        elif program is not None or self._runs_program():
            answer = self._owner_of(program["call"] if program is not None else "") or self._answer(identity, entry)
            # Both the session that makes the call and the one that it starts name it by its action.
            call = VibeCall(id=identity.removeprefix(_EFFECT), program=program["call"] if program else self._program())
        else:
            answer, call = self._guess(identity, entry), VibeCall(id=identity)
        call.effect = entry
        answer.calls = [*(each for each in answer.calls if each.id != call.id), call]

    def _call_id(self, identity: str, entry: Json) -> str | None:
        output = object_of(object_of(entry.get("state")).get("output"))
        facts = object_of(object_of(output.get("_meta")).get("mistral.vibe.subagent"))
        return self._session.calls.get(identity.removeprefix(_EFFECT)) or text_of(facts.get("spawnCallId"))

    def _owner_of(self, call_id: str) -> VibeRow | None:
        found = (row for row in self._rows.values() if any(call.id == call_id for call in row.calls))
        return next(found, self._current)

    def _program(self) -> str | None:
        calls = self._current.calls if self._current is not None else []
        return next((call.id for call in reversed(calls) if call.name == PROGRAM_TOOL), None)

    def _runs_program(self) -> bool:
        return self._program() is not None

    def _guess(self, identity: str, entry: Json) -> VibeRow:
        """The answer of a call of which nothing else is known: a call that begins after another ended is a new step."""
        current, began = self._current, entry.get("createdAt")
        ended = [object_of(call.effect).get("updatedAt") for call in current.calls] if current is not None else []
        is_next = any(isinstance(end, int) and isinstance(began, int) and end <= began for end in ended)
        answer = self._answer(identity, entry) if current is None or is_next else current
        answer.guessed = True
        return answer

    def _add_calls_without_entry(self) -> None:
        """Add answers that consist of such calls alone, after the answer or prompt before each."""
        for answer, calls in self._without_entry.items():
            before = self._rows.get(self._before.get(answer, ""))
            row = VibeRow(
                row=ANSWER,
                id=f"{self._external}.{answer}",
                position=before.position + 1 if before is not None else 1,
                turn=before.turn if before is not None else 0,
                step=before.step + 1 if before is not None else 1,
                calls=calls,
                model=self._model,
            )
            for later in self._rows.values():
                if later.turn == row.turn and later.position > row.position and later.row == ANSWER:
                    later.step += 1
            self._rows[answer] = row
        for row in self._rows.values():
            row.calls.sort(key=self._place_of)

    def _place_of(self, call: VibeCall) -> int:
        return self._order.get(call.program or call.id, len(self._order))

    def _add_usage(self) -> None:
        for completion in self._session.completions:
            row = self._rows.get(self._answer_id(completion, _calls_of(completion)))
            if row is not None and row.row == ANSWER:
                row.usage = object_of(completion.result.get("usage")) or None
                row.finish = text_of(completion.result.get("finish_reason"))
                row.at = completion.at if isinstance(completion.at, int | float) else None

    def _turn_rows(self) -> Iterator[VibeRow]:
        turn = object_of(self._session.state.get("latestTurn"))
        identity = text_of(turn.get("id"))
        if identity is None:
            return
        self._position += 1
        facts = {name: value for name, value in turn.items() if name not in ("sessionId", "queueItemId")}
        yield VibeRow(
            row=TURN, id=f"{self._external}.{identity}", position=self._position, turn=self._turn, facts=facts
        )

    def _session_row(self) -> VibeRow:
        about, metadata = object_of(self._session.state.get("session")), self._session.metadata
        facts = {
            "identity": {name: value for name, value in self._session.identity.items() if name != "metadata"},
            "runtime": object_of(self._session.identity.get("metadata")),
            "session": about,
            "meta": {name: value for name, value in metadata.items() if name not in ("username", "experiments")},
        }
        return VibeRow(row=SESSION, id=self._external, position=self._position, model=self._model, facts=facts)


# -- calls of the model


def is_prompt(entry: Json) -> bool:
    """Whether an entry is what a person asked, or another session."""
    return entry.get("type") == "message" and entry.get("role") == "user"


def position_at(milliseconds: float) -> int:
    """The position of something that happened at a time."""
    return int(min(max(milliseconds, 0), (HOOKED_FROM - 1) // _SPREAD) * _SPREAD)


def _position_of(row: VibeRow) -> int:
    return row.position


def _parts(completion: Completion) -> list[Json]:
    return [object_of(part) for part in list_of(completion.result.get("parts"))]


def _calls_of(completion: Completion) -> list[VibeCall]:
    return [_call_of(part) for part in _parts(completion) if part.get("type") == "tool_call"]


def _calls_in(message: Json) -> list[VibeCall]:
    parts = [object_of(part) for part in list_of(message.get("content"))]
    return [_call_of(part) for part in parts if part.get("type") == "tool_call"]


def _call_of(part: Json) -> VibeCall:
    """A call as the journal or the context has it."""
    arguments = part.get("arguments_json")
    if arguments is None:
        arguments = object_of(part.get("arguments")).get("raw")
    return VibeCall(
        id=text_of(part.get("id")) or "", name=text_of(part.get("name")) or "", arguments=text_of(arguments)
    )


def _owned_by(rows: Iterable[VibeRow]) -> dict[str, _Owned]:
    found: dict[str, _Owned] = {}
    for row in rows:
        for call in row.calls:
            identity = text_of(object_of(call.effect).get("id"))
            if row.row == ANSWER and identity is not None and not row.guessed:
                found[identity] = _Owned(row.id.partition(".")[2], msgspec.structs.replace(call))
    return found


# -- the context beside the history

Turn = list[Json]


class _Matched(NamedTuple):
    """An answer of the model: what comes before it, and its calls with the entries of these."""

    answer: str
    before: str
    calls: list[tuple[VibeCall, str | None]]


def _matched(session: VibeSession) -> list[_Matched]:
    """The answers of the context, as far as contents show which entries are theirs."""
    # Of turns since then, the context has nothing.
    shown = [turn for turn in _turns(session.entries, is_prompt) if text_of(turn[0].get("id")) in session.settled]
    read = [object_of(stored.get("message")) | {"source": stored.get("source")} for stored in session.context]
    sent = _turns(read, _is_input)
    turns: list[list[_Matched]] = []
    while shown and sent:
        if texts_of(shown[-1][0].get("content")) == texts_of(sent[-1][0].get("content")):
            turns.append(list(_matched_turn(shown.pop(), sent.pop(), session.settled)))
        else:
            # A summary takes the place of a prompt.
            sent.pop()
    return [matched for turn in reversed(turns) for matched in turn]


def _is_input(message: Json) -> bool:
    return message.get("role") == "user" and message.get("source") != "injection"


def _turns(items: Sequence[Json], begins: Callable[[Json], bool]) -> list[Turn]:
    turns: list[Turn] = []
    for item in items:
        if begins(item):
            turns.append([item])
        elif turns:
            turns[-1].append(item)
    return turns


def _matched_turn(shown: Turn, sent: Turn, settled: Container[str | None]) -> Iterator[_Matched]:
    outputs = {text_of(one.get("tool_call_id")): one for one in sent if one.get("role") == "tool"}
    before, entries = text_of(shown[0].get("id")) or "", shown[1:]
    for message in sent[1:]:
        if message.get("role") != "assistant":
            continue
        calls = _calls_in(message)
        action = _take_action(entries, message)
        if action is None and not calls:
            continue
        found: list[tuple[VibeCall, str | None]] = []
        for call in calls:
            answer = outputs.get(call.id)
            effect = _take_effect(entries, call, answer, settled)
            if effect is None and answer is not None:
                call.output, call.failed = texts_of(answer.get("content")), answer.get("outcome") == "failure"
            found.append((call, effect))
        matched = _Matched(action or calls[0].id, before, found)
        yield matched
        before = matched.answer


def _take_action(entries: list[Json], message: Json) -> str | None:
    """The action that wrote a message, by its text or its thoughts; its entries are taken off."""
    parts = [object_of(part) for part in list_of(message.get("content"))]
    thoughts = "".join(texts_of(part.get("content")) for part in parts if part.get("type") == "reasoning")
    text = texts_of(message.get("content"))
    for entry in entries:
        shown = _SHOWN.fullmatch(text_of(entry.get("id")) or "")
        if shown is None:
            continue
        is_same = (text and texts_of(entry.get("content")) == text) or (thoughts and entry.get("text") == thoughts)
        if is_same:
            action = shown["action"]
            entries[:] = [one for one in entries if action not in str(one.get("id"))]
            return action
    return None


def _take_effect(
    entries: list[Json], call: VibeCall, answer: Json | None, settled: Container[str | None]
) -> str | None:
    """The entry of a call, by its tool and what went in or came out; it is taken off."""
    name = _OTHER_NAMES.get(call.name, call.name)
    unlike: list[int] = []
    for place, entry in enumerate(entries):
        detail = object_of(entry.get("detail"))
        tool = text_of(detail.get("toolName")) or ""
        if entry.get("type") != "effect" or tool.rpartition(".")[2] != name:
            continue
        output = object_of(object_of(entry.get("state")).get("output")).get("structured_content")
        same_output = answer is not None and output is not None and _json(texts_of(answer.get("content"))) == output
        if same_output or _json(call.arguments or "") == detail.get("input"):
            return text_of(entries.pop(place).get("id"))
        if text_of(entry.get("id")) in settled:
            unlike.append(place)
    # Vibe adds a deadline to what goes into a call that waits: before it ends, only its tool says whose it is.
    if answer is None and len(unlike) == 1:
        return text_of(entries.pop(unlike[0]).get("id"))
    return None


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode(errors="replace"))
    except (msgspec.MsgspecError, RecursionError):
        return None
