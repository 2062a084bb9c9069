"""The fold of one conversation: a file of JSON, or a log of the changes to it. Both are read whole each time.

Each request is a turn: the prompt, and what the model answered until it stopped.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes
from turnlog.agents.conversation import ConversationContext
from turnlog.agents.copilot_chat import NAME, RESPONSE_END
from turnlog.agents.copilot_chat.changes_log import LINES, LoggedConversation, Place
from turnlog.agents.copilot_chat.contents import (
    RequestFacts,
    answers_in,
    message_text,
    parts_of,
    rounds_of,
    time_of,
)
from turnlog.agents.copilot_chat.sources import session_id, workspace_of
from turnlog.agents.decoding import branch_of, clean_json, list_of, object_of, text_of
from turnlog.agents.json_file import locate_items, read_object
from turnlog.agents.jsonl import JsonLines
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    RewindEvent,
    RunMetadataEvent,
    SessionTotal,
    TextPart,
    Usage,
)
from turnlog.model.session import title_line


class ConversationSnapshot(msgspec.Struct, rename="camel"):
    """A conversation, with its requests as they are."""

    version: int | None = None
    session_id: str | None = None
    requests: list[Raw] | None = None


_FILES = JsonLines(ConversationSnapshot, first_keys=("version",), plausible=lambda file: True)

_COMPLETE, _CANCELLED, _FAILED = 1, 2, 3
"""States of a response that has ended."""


class CopilotChatFold(StatelessFold):
    """Reads one conversation."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = ConversationContext(self._source.session_id or session_id(Path(self._source.path).stem))
        requests = LoggedConversation()
        if self._source.path.endswith(".jsonl"):
            _read_log(context, requests, data)
        else:
            _read_snapshot(context, requests, data)
        if requests.value:
            _read_session(context, requests.value, Path(self._source.path))
            found = map(object_of, list_of(requests.value.get("requests")))
            for request, places in zip(found, requests.places, strict=False):
                _read_request(context, request, places)
        return context.finish()


def _read_log(context: ConversationContext, requests: LoggedConversation, data: bytes) -> None:
    for line in LINES.read_into(context, data, 0, 1):
        if requests.apply(context, line):
            context.changes.counts.events += 1
        else:
            context.report("a change that does not fit")
            context.changes.counts.unreadable += 1
    # The lines have been counted; a request may be in several.
    context.line_number = 0


def _read_snapshot(context: ConversationContext, requests: LoggedConversation, data: bytes) -> None:
    record = read_object(context, data, _FILES, lambda fields: "requestId" in fields)
    if record is None:
        return
    try:
        requests.value = object_of(msgspec.json.decode(clean_json(context.json)))
    except (msgspec.MsgspecError, RecursionError):
        context.report("numbers or nesting that cannot be read")
        return
    found = locate_items(record.requests or (), context.json, context.position)
    requests.places = [[(position, length)] for _, position, length in found]
    if requests.value:
        context.changes.counts.events += 1


def _read_session(context: ConversationContext, facts: dict[str, Any], path: Path) -> None:
    change = context.session
    change.cwd = change.project_path = workspace_of(path)
    change.git_branch = branch_of(text_of(object_of(facts.get("repoData")).get("localBranch")))
    change.first_at = time_of(facts.get("creationDate"))
    change.last_at = time_of(facts.get("lastMessageDate"))
    title = title_line(text_of(facts.get("customTitle")) or "")
    if title:
        change.titles["custom"] = title
    names = ("initialLocation", "responderUsername")
    kept = {name: facts[name] for name in names if facts.get(name) is not None}
    change.metadata = {NAME: kept} if kept else {}


class _Placed:
    """The place of a request, and those of what is in it: one behind the other, within its JSON."""

    def __init__(self, context: ConversationContext, places: list[Place]) -> None:
        self._context = context
        self._next = places[0][0]
        # A request that grew in many lines is read from the one that has it, and from the newest.
        context.take(b"", *places[-1])

    def next(self) -> int:
        """The next position."""
        self._next += 1
        return self._next - 1

    def skip(self, count: int) -> None:
        """Leave places for the results of calls."""
        self._next += count


def _read_request(context: ConversationContext, request: dict[str, Any], places: list[Place]) -> None:
    placed = _Placed(context, places)
    identity = text_of(request.get("requestId")) or f"{context.external_id}@{places[0][0]}"
    before = context.state.leaf
    at = time_of(request.get("timestamp"))
    _read_prompt(context, request, identity, placed.next(), at)
    result = object_of(request.get("result"))
    metadata = object_of(result.get("metadata"))
    state = object_of(request.get("modelState"))
    is_stopped = state.get("value") == _CANCELLED or request.get("isCanceled") is True
    _read_response(context, request, metadata, identity, placed, is_stopped=is_stopped)
    ended = _end_of(state, result, at)
    if is_stopped:
        context.add_event(
            InterruptEvent(
                id=f"{identity}.interrupt", position=placed.next(), created_at=ended, message_id=context.state.leaf
            )
        )
    words = message_text(object_of(result.get("errorDetails")).get("message"))
    if words is not None and not is_stopped:
        kind = text_of(object_of(result.get("errorDetails")).get("code"))
        context.add_event(
            ErrorEvent(id=f"{identity}.error", position=placed.next(), created_at=ended, error_text=words, kind=kind)
        )
    if state.get("value") in (_COMPLETE, _CANCELLED, _FAILED) or result:
        context.add_event(
            RunMetadataEvent(
                id=f"{identity}.end", position=placed.next(), created_at=ended, kind=RESPONSE_END, data=_facts(request)
            )
        )
    if request.get("shouldBeRemovedOnSend") or request.get("isHidden") is True:
        # The user went back in front of it. It is removed when the next prompt is sent.
        context.state.is_branched = True
        context.state.leaf = before
        context.add_event(
            RewindEvent(id=f"{identity}.rewind", position=placed.next(), created_at=ended, to_message_id=before)
        )


def _facts(request: dict[str, Any]) -> Raw:
    kept = ("modelId", "modelState", "vote", "timeSpentWaiting", "agent", "slashCommand", "usage")
    facts = {name: request[name] for name in kept if request.get(name) is not None}
    agent = object_of(facts.get("agent"))
    if agent:
        facts["agent"] = {name: agent[name] for name in ("id", "name") if name in agent}
    return Raw(msgspec.json.encode(facts))


def _end_of(state: dict[str, Any], result: dict[str, Any], began: datetime | None) -> datetime | None:
    ended = time_of(state.get("completedAt"))
    elapsed = object_of(result.get("timings")).get("totalElapsed")
    if ended is not None or began is None or not isinstance(elapsed, int | float) or not 0 <= elapsed < 1 << 40:
        return ended
    return began + timedelta(milliseconds=elapsed)


def _read_prompt(
    context: ConversationContext, request: dict[str, Any], identity: str, position: int, at: datetime | None
) -> None:
    message = request.get("message")
    text = text_of(message) or text_of(object_of(message).get("text")) or ""
    attached = [object_of(each) for each in list_of(object_of(request.get("variableData")).get("variables"))]
    facts: dict[str, Any] = {
        "attached": [name for each in attached if (name := text_of(each.get("name"))) is not None],
        "agent": object_of(request.get("agent")).get("id"),
        "command": object_of(request.get("slashCommand")).get("name"),
        "mode": object_of(request.get("modeInfo")).get("modeId") or object_of(request.get("modeInfo")).get("kind"),
    }
    known = {name: value for name, value in facts.items() if value}
    context.add(
        Message(
            id=identity,
            role="user",
            parts=(TextPart(id=f"{identity}.0", text=text),) if text else (),
            origin=Origin.PROMPT,
            created_at=at,
            metadata={NAME: known} if known else {},
        ),
        position=position,
    )


def _read_response(
    context: ConversationContext,
    request: dict[str, Any],
    metadata: dict[str, Any],
    identity: str,
    placed: _Placed,
    *,
    is_stopped: bool,
) -> None:
    """Read the answers of the model. The tokens are those of the request, which may be several calls."""
    rounds = rounds_of(metadata)
    known = RequestFacts(rounds, object_of(metadata.get("toolCallResults")), is_stopped)
    items = [object_of(item) for item in list_of(request.get("response"))]
    answers = list(answers_in(items, rounds))
    began = time_of(request.get("timestamp"))
    times = {each.number: each.time for each in rounds.values() if each.time is not None}
    ended = _end_of(object_of(request.get("modelState")), object_of(request.get("result")), began)
    usage, model = _usage_of(request, metadata), _model_of(request, metadata)
    if usage is not None:
        context.session.totals[identity] = SessionTotal(model=model, usage=usage, calls=len(answers))
    for number, answer in enumerate(answers):
        message_id = f"{identity}:{number}"
        at = times.get(answer.number, began) if answer.number is not None else began
        parts, shown = parts_of(answer.items, message_id, known, at)
        is_last = number == len(answers) - 1
        context.add(
            Message(
                id=message_id,
                role="assistant",
                parts=tuple(parts),
                created_at=at,
                completed_at=ended if is_last else None,
                model=model,
                requested_model=_requested(request),
                response_id=text_of(request.get("responseId")),
                metadata={NAME: {"shown": shown}} if shown else {},
            ),
            position=placed.next(),
            is_counted=False,
        )
        placed.skip(len(parts))


def _requested(request: dict[str, Any]) -> str | None:
    name = text_of(request.get("modelId"))
    return None if name is None else name.rpartition("/")[2] or name


def _model_of(request: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    """The model that answered; the one that was asked for may be `auto`."""
    resolved = text_of(metadata.get("resolvedModel"))
    requested = _requested(request)
    return resolved or (requested if requested != "auto" else None)


def _usage_of(request: dict[str, Any], metadata: dict[str, Any]) -> Usage | None:
    """Tokens of a request. They leave out calls in between, and do not say what was read from a cache."""
    used = object_of(request.get("usage"))
    prompt = _count(used.get("promptTokens")) or _count(metadata.get("promptTokens"))
    output = _count(used.get("completionTokens")) or _count(metadata.get("outputTokens"))
    if prompt is None and output is None:
        return None
    return Usage(input=prompt, output=output, exactness="lower_bound")


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1 << 53 else None
