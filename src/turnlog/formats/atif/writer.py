"""A session and its subagents' as one trajectory.

A step is a message with all results of its calls, also those that came later: a result must be in the step of its
call. Steps are the conversation in its order, with what was compacted. What was rewound is not part of a trajectory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from turnlog.errors import ConversionError
from turnlog.formats.atif.schema import (
    AUDIO,
    IMAGES,
    VERSION,
    AtifAgent,
    AtifContentPart,
    AtifMetrics,
    AtifStep,
    AtifToolCall,
    FinalMetrics,
    Media,
    Observation,
    ObservationResult,
    SubagentReference,
    Trajectory,
)
from turnlog.formats.call_arguments import readable_arguments, unreadable
from turnlog.formats.token_counts import cache_writes, completion_tokens, prompt_tokens
from turnlog.model import (
    CompactionEvent,
    Cost,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Membership,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RewindEvent,
    Session,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    Usage,
)
from turnlog.model.message import UNCALLED_ORIGINS

FOLDER = "images"
"""Where images and sounds are, beside the trajectory."""

_TYPED = frozenset({None, Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""What was said to the agent; all else that has the role of the user is from the agent's own program."""

_LOST_EVENTS: dict[type[HistoryEvent], str] = {
    CompactionEvent: "compaction",
    RewindEvent: "rewind",
    InterruptEvent: "interrupt",
    ErrorEvent: "error",
}

_ORDER: dict[type[Part], int] = {ReasoningPart: 0, TextPart: 1, FilePart: 1, ToolCallPart: 2}
"""A step has its reasoning before its message, and its calls after it."""


class AtifOmission(NamedTuple):
    """Something of a session that its trajectory does not contain."""

    kind: str
    detail: str


class AtifConversation(NamedTuple):
    """One session, as it is written. The first one given is the trajectory; others are its subagents'."""

    session: Session
    placed: Sequence[tuple[Message, Membership, Cost | None]]
    """Its messages with their results, contents whole, their places, and what they cost."""
    events: Sequence[HistoryEvent]
    read_spill: Callable[[str], str | None]
    """The whole of an output that a result previews, by its name."""


class AtifDocument(NamedTuple):
    """A trajectory, the images and sounds that it names, and what it does not contain."""

    trajectory: Trajectory
    files: Mapping[str, bytes]
    """Path, relative to the trajectory's own folder -> content."""
    losses: tuple[AtifOmission, ...]

    def to_json(self) -> bytes:
        """The trajectory as JSON."""
        return msgspec.json.encode(self.trajectory)


def to_atif(conversations: Sequence[AtifConversation]) -> AtifDocument:
    """A session and its subagents' as a trajectory.

    Args:
        conversations: The session, then all that it started, each after the one that started it.

    Raises:
        ConversionError: The session has no messages; a trajectory has at least one step.
    """
    losses: list[AtifOmission] = []
    files: dict[str, bytes] = {}
    root = conversations[0].session
    written = {each.session.id for each in conversations if any(_is_part(place) for _, place, _ in each.placed)}
    if root.id not in written:
        raise ConversionError("the session has no messages: a trajectory has at least one step")
    known = {each.session.id for each in conversations}
    children: dict[str, list[Trajectory]] = {}
    made: Trajectory | None = None
    # From the last to the first: those of a session are made before it.
    for each in reversed(conversations):
        links = [link.parent_session_id for link in each.session.relationships if link.kind == "subagent"]
        parent = next((link for link in links if link in known), "")
        inner = children.pop(each.session.id, [])
        if each.session.id not in written:
            losses.append(AtifOmission("subagent", f"{each.session.id} has no messages"))
            children.setdefault(parent, []).extend(inner)
            continue
        writer = _Writer(each, frozenset(child.trajectory_id for child in inner), files, losses)
        made = writer.trajectory(root.external_id, inner[::-1])
        children.setdefault(parent, []).append(made)
    assert made is not None
    return AtifDocument(made, files, tuple(losses))


def _trajectory_id(session_id: str) -> str:
    """The id of a trajectory. One that was read has its own in its session's, and keeps it."""
    return session_id.removeprefix("atif:")


def _is_part(place: Membership) -> bool:
    return place.fate in (Fate.ACTIVE, Fate.COMPACTED)


class _Writer:
    """Writes one session."""

    def __init__(
        self,
        conversation: AtifConversation,
        children: frozenset[str],
        files: dict[str, bytes],
        losses: list[AtifOmission],
    ) -> None:
        self._conversation = conversation
        self._children = children
        self._files = files
        self._losses = losses

    def trajectory(self, run: str, children: list[Trajectory]) -> Trajectory:
        session = self._conversation.session
        steps = self._steps()
        project = None if session.project is None else session.project.path
        facts = {
            "title": session.title,
            "project": project,
            "cwd": session.cwd,
            "git_branch": session.git_branch,
            "git_commit": session.git_commit,
        }
        return Trajectory(
            schema_version=VERSION,
            session_id=run,
            trajectory_id=_trajectory_id(session.id),
            agent=AtifAgent(
                name=session.agent,
                version=session.agent_version or "unknown",
                model_name=session.models[-1] if session.models else None,
            ),
            steps=steps,
            notes=self._notes(),
            final_metrics=_final_metrics(session, len(steps), children),
            extra=_known(facts),
            subagent_trajectories=children,
        )

    def _notes(self) -> str | None:
        left = sum(not _is_part(place) for _, place, _ in self._conversation.placed)
        return f"final_metrics count {left} messages that are no steps: they were rewound or replaced" if left else None

    def _steps(self) -> list[AtifStep]:
        items: list[tuple[int, AtifStep]] = []
        for message, place, cost in self._conversation.placed:
            if _is_part(place):
                items.append((place.position, self._step(message, place, cost)))
            else:
                self._lose(place.fate.value, f"message {message.id} is not part of the conversation")
        for event in self._conversation.events:
            if isinstance(event, ToolResultEvent):
                items.append((event.position, self._orphan(event)))
            elif type(event) in _LOST_EVENTS:
                self._lose(_LOST_EVENTS[type(event)], f"at position {event.position}")
        items.sort(key=lambda item: item[0])
        return [msgspec.structs.replace(step, step_id=number) for number, (_, step) in enumerate(items, 1)]

    def _step(self, message: Message, place: Membership, cost: Cost | None) -> AtifStep:
        texts = [part for part in message.parts if isinstance(part, TextPart | FilePart)]
        facts: dict[str, Any] = {"message_id": message.id, "origin": message.origin}
        self._report_parts(message)
        if message.error is not None:
            facts["error"] = {"text": message.error.text} | _known(
                {"kind": message.error.kind, "status": message.error.status}
            )
        if message.role != "assistant":
            self._lose_calls(message)
            typed = message.role == "user" and message.origin in _TYPED
            if not typed and message.role != "system":
                facts["role"] = message.role
            return AtifStep(
                step_id=0,
                timestamp=message.created_at,
                source="user" if typed else "system",
                message=self._content(texts, message.id),
                is_copied_context=None if place.is_billed else True,
                extra=_known(facts),
            )
        facts |= {"stop_reason": message.stop_reason, "requested_model": message.requested_model}
        if message.model is None and self._conversation.session.models:
            # A step that names no model is by the format of the agent's, which is another fact.
            facts["without_model"] = True
        called = message.origin not in UNCALLED_ORIGINS
        thoughts = [part.text for part in message.parts if isinstance(part, ReasoningPart) and part.text]
        if thoughts and not called:
            self._lose("reasoning", f"message {message.id} has no model call")
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        results = [result for call in calls for result in self._results(call)]
        return AtifStep(
            step_id=0,
            timestamp=message.created_at,
            source="agent",
            model_name=message.model,
            message=self._content(texts, message.id),
            reasoning_content="\n\n".join(thoughts) if thoughts and called else None,
            tool_calls=[self._call(call) for call in calls],
            observation=Observation(results=results) if results else None,
            metrics=_metrics(message.usage, cost or message.cost) if called else None,
            is_copied_context=None if place.is_billed else True,
            llm_call_count=int(called),
            extra=_known(facts),
        )

    def _call(self, call: ToolCallPart) -> AtifToolCall:
        facts = {
            "kind": call.kind,
            "state": call.state,
            "title": call.title,
            "started_at": call.started_at,
            "provider_executed": call.provider_executed or None,
            "parent_tool_call_id": call.parent_tool_call_id,
            "approval": call.approval,
        }
        arguments = readable_arguments(call)
        if arguments.loss is not None:
            self._lose("arguments", f"call {call.tool_call_id}: {arguments.loss}, so they are a text")
        facts["arguments_are_input"] = (arguments.is_wrapped or arguments.loss is not None) or None
        if unreadable(msgspec.json.encode(_known(facts))) is not None:
            self._lose("approval", f"call {call.tool_call_id}: nested too deep")
            facts["approval"] = None
        return AtifToolCall(
            tool_call_id=call.tool_call_id, function_name=call.tool_name, arguments=arguments.json, extra=_known(facts)
        )

    def _results(self, call: ToolCallPart) -> list[ObservationResult]:
        child = _trajectory_id(call.child_session_id or "")
        references = (
            [SubagentReference(trajectory_id=child, session_id=child)] if child and child in self._children else []
        )
        if not call.results and references:
            return [ObservationResult(source_call_id=call.tool_call_id, subagent_trajectory_ref=references)]
        return [
            self._result(call.tool_call_id, result, references if number == 0 else [])
            for number, result in enumerate(call.results)
        ]

    def _result(
        self, call_id: str | None, result: ToolResult, references: list[SubagentReference], **more: Any
    ) -> ObservationResult:
        facts = {
            "status": result.status,
            "error_text": result.error_text if result.error_text != result.output_text else None,
            "exit_code": result.exit_code,
            "preliminary": result.preliminary or None,
            "completed_at": result.completed_at,
            "duration_ms": result.duration_ms,
        }
        content = [part for part in result.content if isinstance(part, TextPart | FilePart)]
        for part in result.content:
            if not isinstance(part, TextPart | FilePart):
                self._lose(part.type, f"result {result.id} of call {call_id}")
        whole = self._conversation.read_spill(result.spilled_to) if result.spilled_to else None
        return ObservationResult(
            source_call_id=call_id,
            content=self._content(content, result.id) if whole is None else whole,
            subagent_trajectory_ref=references,
            extra=_known(facts | more),
        )

    def _orphan(self, event: ToolResultEvent) -> AtifStep:
        """A result whose call is not known: it may name no call, so that `extra` has its id."""
        result = self._result(None, event.result, [], tool_call_id=event.tool_call_id, tool_name=event.tool_name)
        return AtifStep(
            step_id=0,
            timestamp=event.created_at,
            source="system",
            message="",
            observation=Observation(results=[result]),
        )

    def _content(self, parts: Sequence[TextPart | FilePart], owner: str) -> str | list[AtifContentPart]:
        """One text as itself, anything else as a list."""
        made = [found for part in parts if (found := self._content_part(part, owner)) is not None]
        if not made:
            return ""
        only = made[0].text if len(made) == 1 else None
        return made if only is None else only

    def _content_part(self, part: TextPart | FilePart, owner: str) -> AtifContentPart | None:
        if isinstance(part, TextPart):
            return AtifContentPart(type="text", text=part.text)
        kind = part.media_type.partition(";")[0].strip().lower()
        is_image = kind in IMAGES
        path = self._path(part, kind) if is_image or kind in AUDIO else None
        if path is None:
            self._lose("file", f"{part.media_type} {part.filename or ''}".rstrip() + f" in {owner}")
            return None
        if is_image:
            return AtifContentPart(type="image", source=Media(media_type=kind, path=path))
        return AtifContentPart(type="audio", source=Media(media_type=AUDIO[kind], path=path))

    def _path(self, part: FilePart, kind: str) -> str | None:
        if part.data is None:
            return part.url
        extension = kind.rpartition("/")[2].replace("jpeg", "jpg")
        path = f"{FOLDER}/{hashlib.sha256(part.data).hexdigest()}.{extension}"
        self._files[path] = part.data
        return path

    def _report_parts(self, message: Message) -> None:
        ranks = [_ORDER[type(part)] for part in message.parts if type(part) in _ORDER]
        if ranks != sorted(ranks):
            self._lose("order", f"message {message.id}: text, reasoning and calls are apart in a step")
        for part in message.parts:
            if type(part) not in _ORDER:
                self._lose(part.type, f"message {message.id}")
            if part.provider is not None:
                self._lose("provider data", f"message {message.id}: what its provider signed or encrypted")
            if isinstance(part, TextPart) and part.citations:
                self._lose("citations", f"message {message.id}")

    def _lose_calls(self, message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ToolCallPart | ReasoningPart):
                self._lose(part.type, f"message {message.id} is not the agent's")

    def _lose(self, kind: str, detail: str) -> None:
        self._losses.append(AtifOmission(kind, detail))


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _metrics(usage: Usage | None, cost: Cost | None) -> AtifMetrics | None:
    if usage is None and cost is None:
        return None
    found = usage or Usage()
    facts = {
        "reasoning_tokens": found.reasoning,
        "cache_write_tokens": cache_writes(found),
        "exactness": None if found.exactness == "exact" else found.exactness,
        "cost_kind": None if cost is None else cost.kind,
    }
    return AtifMetrics(
        prompt_tokens=prompt_tokens(found),
        completion_tokens=completion_tokens(found),
        cached_tokens=found.cache_read,
        cost_usd=_dollars(cost),
        extra=_known(facts),
    )


def _final_metrics(session: Session, steps: int, children: Iterable[Trajectory]) -> FinalMetrics:
    usage = session.usage.usage
    own = session.cost or session.reported_cost
    costs = [_dollars(own)]
    costs += [child.final_metrics.total_cost_usd for child in children if child.final_metrics is not None]
    known = [cost for cost in costs if cost is not None]
    facts = {
        "calls": session.usage.calls or None,
        "unknown_calls": session.usage.unknown_calls or None,
        "unpriced_calls": session.unpriced_calls or None,
        "cost_kind": None if own is None else own.kind,
    }
    return FinalMetrics(
        total_prompt_tokens=prompt_tokens(usage),
        total_completion_tokens=completion_tokens(usage),
        total_cached_tokens=usage.cache_read,
        total_cost_usd=float(sum((Decimal(repr(cost)) for cost in known), Decimal())) if known else None,
        total_steps=steps,
        extra=_known(facts),
    )


def _dollars(cost: Cost | None) -> float | None:
    return float(cost.amount) if cost is not None and cost.currency == "USD" else None
