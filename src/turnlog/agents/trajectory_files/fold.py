"""The fold of a trajectory, which is one line of a log: its steps and those of its subagents.

A step is a message with its calls and their results. Steps have no ids but their numbers, so a message is named by its
trajectory and its step. A trajectory in which there are others is several sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, Link
from turnlog.agents.conversation import ConversationContext
from turnlog.agents.decoding import (
    REPLACED,
    LineContext,
    clean_json,
    fields_of,
    is_utf8,
    list_of,
    object_of,
    text_of,
    value_of,
)
from turnlog.agents.json_file import recover_items
from turnlog.agents.jsonl import count_lines
from turnlog.agents.open_calls import OpenCall
from turnlog.agents.row_files import ROWS, RowLine
from turnlog.agents.trajectory_files.contents import (
    call_part,
    content_parts,
    cost_of,
    error_of,
    extra_of,
    is_priced,
    member,
    orphan_call,
    own_metadata,
    result_of,
    thought_parts,
    time_of,
    tokens_of,
    usage_of,
)
from turnlog.agents.trajectory_files.records import STEPS, TRAJECTORIES, StepRecord, StepResult, TrajectoryRecord
from turnlog.agents.trajectory_files.sources import TRAJECTORY, external_id, read_line, session_id
from turnlog.model import Cost, Message, Origin, Part, Role, SessionTotal, StopReason, ToolCallPart, ToolResult
from turnlog.model.merge import add_results
from turnlog.model.session import title_given

_STEP_FACTS = frozenset({"message_id", "origin", "role", "error", "stop_reason", "requested_model", "without_model"})
_SESSION_FACTS = frozenset({"title", "project", "cwd", "git_branch", "git_commit"})
"""What turnlog writes into `extra`, and reads again."""

_ROLES: Final[dict[str, Role]] = {"user": "user", "agent": "assistant", "system": "system"}

_MOST_LEVELS = 32
"""Trajectories of subagents within one another."""


class TrajectoryFold:
    """Reads a trajectory. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._lines = int(state or b"0")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = LineContext(Changes())
        for line in ROWS.read_into(context, data, offset, self._lines + 1):
            self._read(context, line)
        self._lines += count_lines(data)
        return context.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b"%d" % self._lines

    def _read(self, context: LineContext, line: RowLine) -> None:
        document, files = read_line(line) if line.table == TRAJECTORY else (b"", {})
        record = _decoded(context, document) if document else None
        if record is None or not record.steps:
            context.report("no trajectory with a step")
            context.changes.counts.unreadable += 1
            return
        context.changes.counts.messages += 1
        external = external_id(record.trajectory_id, record.session_id, self._source.path)
        _Reading(context, record, external, files, "$").read()


def _decoded(context: LineContext, document: bytes) -> TrajectoryRecord | None:
    """The trajectory; of a damaged one what comes before its steps, and the steps that are whole."""
    # Before it is decoded: what is wrong in a step would not be seen.
    if not is_utf8(document):
        context.report(REPLACED, "note", "$")
    text = clean_json(document.strip(b" \t\r\n\x00").removeprefix(b"\xef\xbb\xbf").lstrip())
    found = TRAJECTORIES.decode(text)
    if isinstance(found, str):
        context.report(found, json_path="$")
        found = TRAJECTORIES.decode(recover_items(text, "steps", lambda fields: "step_id" in fields))
        if isinstance(found, str):
            return None
    for problem in found.problems:
        context.report(problem.reason, problem.severity, problem.json_path)
    return found.record


class _Reading:
    """One reading of a trajectory."""

    def __init__(
        self,
        line: LineContext,
        record: TrajectoryRecord,
        external: str,
        files: Mapping[str, bytes],
        place: str,
        above: tuple[str, ...] = (),
    ) -> None:
        self._line = line
        self._record = record
        self._external = session_id(external).partition(":")[2]
        self._files = files
        self._place = place
        self._parent = above[-1] if above else None
        """The session that has this one among its subagents."""
        self._above = above
        """That session, after those that have it among theirs."""
        self._context = ConversationContext(session_id(external))
        self._context.changes = line.changes
        self._context.take(b"", line.position, line.length)
        self._position = 0
        self._named: set[str] = set()
        self._calls: dict[str, str] = {}
        """Calls of earlier steps -> their message."""
        self._costs: list[Cost | None] = []
        self._is_priced = False
        """Whether turnlog computed the cost of a step."""
        self._references: dict[str, tuple[str | None, str]] = {}
        """Trajectory of a subagent -> the call that it belongs to, and the message of that."""
        self._reference_places: dict[str, str] = {}

    def read(self) -> None:
        """Read the facts, then all steps, then the subagents."""
        self._read_facts()
        has_tokens = False
        for number, raw in enumerate(self._record.steps or ()):
            place = f"{self._place}.steps[{number}]"
            found = STEPS.decode(bytes(raw))
            if isinstance(found, str):
                self._line.report(found, json_path=place)
                continue
            self._line.report_problems(found.problems, place)
            has_tokens |= self._read_step(found.record, number, place)
        self._read_totals(has_tokens)
        self._read_subagents()
        self._context.finish()

    def _next(self) -> int:
        self._position += 1
        return self._position

    # -- the session

    def _read_facts(self) -> None:
        record, change = self._record, self._context.session
        agent = record.agent
        facts, others = extra_of(record.extra, _SESSION_FACTS)
        # harbor has these of Claude Code as lists, of Codex by themselves.
        ran = {} if agent is None else {name: value_of(raw) for name, raw in fields_of(agent.extra).items()}
        git = object_of(ran.get("git"))
        change.cwd = text_of(facts.get("cwd")) or _first(ran.get("cwd"), ran.get("cwds"))
        change.git_branch = text_of(facts.get("git_branch")) or _first(git.get("branch"), ran.get("git_branches"))
        change.git_commit = text_of(facts.get("git_commit")) or text_of(git.get("commit_hash"))
        change.project_path = text_of(facts.get("project")) or change.cwd
        title = title_given(text_of(facts.get("title")) or "")
        if title:
            change.titles["generated"] = title
        version = agent.version if agent is not None else None
        change.agent_version = version if version and version != "unknown" else None
        change.metadata = own_metadata(
            {
                "schema_version": record.schema_version,
                "agent": agent.name if agent is not None else None,
                "agent_version": version,
                "agent_extra": extra_of(agent.extra)[1] if agent is not None else None,
                "notes": record.notes,
                "extra": others,
                "final_metrics": self._totals(),
                **(record.others or {}),
            }
        )
        if self._parent is not None:
            call, message = self._call_of_this
            self._line.changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=self._parent,
                    child_session_id=self._context.session_id,
                    tool_call_id=call,
                    message_id=message,
                )
            )
        if record.continued_trajectory_ref:
            following = external_id(None, record.session_id, record.continued_trajectory_ref)
            self._link("continuation", following, None, None)

    _call_of_this: tuple[str | None, str | None] = (None, None)

    def _link(self, kind: Any, external: str, call: str | None, message: str | None) -> None:
        child = session_id(external)
        if child != self._context.session_id:
            self._line.changes.links.append(
                Link(
                    kind=kind,
                    parent_session_id=self._context.session_id,
                    child_session_id=child,
                    tool_call_id=call,
                    message_id=message,
                )
            )

    def _totals(self) -> dict[str, Any] | None:
        totals = self._record.final_metrics
        if totals is None:
            return None
        known = {name: value for name, value in msgspec.structs.asdict(totals).items() if type(value) in (int, float)}
        return known | extra_of(totals.extra)[1]

    def _read_totals(self, has_tokens: bool) -> None:
        """Take the totals where steps do not say what they used. With subagents in them they are nobody's own."""
        costs = [cost.amount for cost in self._costs if cost is not None]
        if costs:
            self._context.session.reported_cost = float(sum(costs))
        totals = self._record.final_metrics
        if totals is None or self._record.subagent_trajectories:
            return
        usage = tokens_of(totals.total_prompt_tokens, totals.total_completion_tokens, totals.total_cached_tokens)
        if usage is not None and not has_tokens:
            agent = self._record.agent
            model = agent.model_name if agent is not None else None
            self._context.session.totals[f"{self._external}.total"] = SessionTotal(model=model, usage=usage)
        if not costs and not self._is_priced and not is_priced(totals.extra):
            self._context.session.reported_cost = totals.total_cost_usd

    def _read_subagents(self) -> None:
        named: set[str] = set()
        for number, raw in enumerate(self._record.subagent_trajectories or ()):
            place = f"{self._place}.subagent_trajectories[{number}]"
            if len(self._above) == _MOST_LEVELS:
                self._line.report("too many levels of subagents", json_path=place)
                return
            found = TRAJECTORIES.decode(bytes(raw))
            if isinstance(found, str):
                self._line.report(found, json_path=place)
                continue
            self._line.report_problems(found.problems, place)
            name = found.record.trajectory_id or str(number)
            if name in named:
                self._line.report("the id of another subagent", "note", f"{place}.trajectory_id")
                name = f"{name}.{number}"
            named.add(name)
            # Ids of subagents are unique only within the trajectory that contains them. An export of one that was read
            # has them with its own id already.
            external = name if name.startswith(f"{self._external}.") else f"{self._external}.{name}"
            above = (*self._above, self._context.session_id)
            inner = _Reading(self._line, found.record, external, self._files, place, above)
            inner._call_of_this = self._references.pop(name, (None, None))
            inner.read()
        for name, (call, message) in self._references.items():
            if session_id(name) in (*self._above, self._context.session_id):
                self._line.report(
                    "a trajectory that contains this step is no subagent of it", json_path=self._reference_places[name]
                )
            else:
                self._link("subagent", name, call, message)

    # -- steps

    def _identity(self, step: StepRecord, number: int, place: str) -> str:
        if step.step_id != number + 1:
            self._line.report(f"step {number + 1} has the number {step.step_id}", "note", place)
        identity = f"{self._external}.{step.step_id or f'n{number + 1}'}"
        if identity in self._named:
            identity = f"{self._external}.n{number + 1}"
        self._named.add(identity)
        return identity

    def _read_step(self, step: StepRecord, number: int, place: str) -> bool:
        """Add a step; return whether it says what it used."""
        identity = self._identity(step, number, place)
        if step.source not in _ROLES:
            self._line.report(
                f"a step of {step.source!r}: it is read as one of the system", json_path=f"{place}.source"
            )
        at = time_of(step.timestamp)
        if step.timestamp is not None and at is None:
            self._line.report("no time", json_path=f"{place}.timestamp")
        facts, others = extra_of(step.extra, _STEP_FACTS)
        is_answer = step.source == "agent"
        parts = [*thought_parts(step, identity), *content_parts(step.message, identity, self._files)]
        first = len(parts)
        calls = [call_part(call, f"{identity}.c{index}", at) for index, call in enumerate(step.tool_calls or ())]
        loose = self._add_results(calls, step, identity, place)
        parts[first:] = calls
        usage, cost = usage_of(step.metrics), cost_of(step.metrics)
        if step.is_copied_context is not True:
            self._costs.append(cost)
        self._is_priced |= step.metrics is not None and is_priced(step.metrics.extra)
        kept = own_metadata(
            {
                "message_id": facts.get("message_id"),
                "reasoning_effort": step.reasoning_effort,
                "llm_call_count": step.llm_call_count,
                "metrics": _other_metrics(step),
                **others,
                **(step.others or {}),
            }
        )
        if parts or not loose or usage is not None or facts:
            self._add(
                Message(
                    id=identity,
                    role=self._role(step, facts),
                    parts=tuple(parts),
                    origin=self._origin(step, facts),
                    created_at=at,
                    model=self._model(step, facts) if is_answer else None,
                    requested_model=text_of(facts.get("requested_model")),
                    stop_reason=next((each for each in get_args(StopReason) if each == facts.get("stop_reason")), None),
                    usage=usage,
                    cost=cost,
                    error=error_of(facts.get("error")),
                    metadata=kept,
                ),
                is_copied=step.is_copied_context is True,
            )
        for index, result in loose:
            self._add_loose(result, f"{identity}.r{index}", step)
        return usage is not None

    def _add(self, message: Message, *, is_copied: bool) -> None:
        self._context.add(message, position=self._next(), is_counted=False, is_copied=is_copied)
        if is_copied:
            # The trajectory that it was copied from counts its tokens, and has it under another id.
            added = self._line.changes.messages[-1]
            placement = msgspec.structs.replace(added.placement, handed_over=True)
            self._line.changes.messages[-1] = msgspec.structs.replace(added, placement=placement)
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        self._calls |= {call.tool_call_id: message.id for call in calls}
        self._position += sum(len(call.results) for call in calls)

    def _model(self, step: StepRecord, facts: Mapping[str, Any]) -> str | None:
        """The model of an answer: the agent's where its step names none, unless turnlog wrote that none was known."""
        agent = self._record.agent
        if step.model_name or agent is None or facts.get("without_model") is True:
            return step.model_name
        return agent.model_name

    def _role(self, step: StepRecord, facts: Mapping[str, Any]) -> Role:
        if step.source == "system" and facts.get("role") in ("user", "developer"):
            return facts["role"]
        return _ROLES.get(step.source or "", "system")

    def _origin(self, step: StepRecord, facts: Mapping[str, Any]) -> Origin | None:
        if "origin" in facts:
            return member(Origin, facts["origin"])
        if step.source == "user":
            return Origin.PROMPT if self._parent is None or self._context.state.turn else Origin.SUBAGENT_PROMPT
        # An answer of the agent's own program: no model was asked.
        return Origin.HARNESS if step.source == "agent" and step.llm_call_count == 0 else None

    # -- results

    def _add_results(
        self, calls: list[ToolCallPart], step: StepRecord, identity: str, place: str
    ) -> list[tuple[int, StepResult]]:
        """Add the results of a step to its calls; return those that belong to none of them, by their number."""
        loose: list[tuple[int, StepResult]] = []
        results = step.observation.results if step.observation is not None else None
        # Of calls with the same id the first one; a step may have a hundred thousand.
        indexes = {call.tool_call_id: index for index, call in reversed(list(enumerate(calls)))}
        found: dict[int, list[ToolResult]] = {}
        for number, result in enumerate(results or ()):
            called = self._called(indexes, len(calls), result)
            self._note_subagents(
                result,
                None if called is None else calls[called].tool_call_id,
                identity,
                f"{place}.observation.results[{number}].subagent_trajectory_ref",
            )
            if called is None:
                loose.append((number, result))
                if result.source_call_id:
                    self._line.report(
                        "its call is not in this step", "note", f"{place}.observation.results[{number}].source_call_id"
                    )
            elif not (result.subagent_trajectory_ref and isinstance(result.content, msgspec.UnsetType)):
                found.setdefault(called, []).append(result_of(result, f"{identity}.r{number}", self._files))
        for called, added in found.items():
            calls[called] = add_results(calls[called], added)
        return loose

    @staticmethod
    def _called(indexes: Mapping[str, int], count: int, result: StepResult) -> int | None:
        """The call of a result. One that names none is of the only call, or of all that were sent at once."""
        if result.source_call_id is None:
            return count - 1 if count else None
        return indexes.get(result.source_call_id)

    def _note_subagents(self, result: StepResult, call: str | None, message: str, place: str) -> None:
        for reference in result.subagent_trajectory_ref or ():
            # Ids of trajectories in this file come first; in another one the run's id may be the only one.
            name = reference.trajectory_id or reference.session_id
            if name:
                self._references[name] = (call, message)
                self._reference_places[name] = place

    def _add_loose(self, result: StepResult, identity: str, step: StepRecord) -> None:
        """Add what belongs to no call of its step: a late result, or what the agent saw after a step without calls."""
        named, _ = orphan_call(result)
        call = result.source_call_id or named
        if call is not None:
            if call in self._calls:
                self._context.state.open_calls[call] = OpenCall(self._calls[call], "", None)
            self._context.add_result(call, result_of(result, identity, self._files), position=self._next())
            return
        parts: list[Part] = content_parts(result.content, identity, self._files)
        if parts:
            seen = Message(
                id=identity,
                role="developer",
                parts=tuple(parts),
                origin=Origin.HARNESS,
                created_at=time_of(step.timestamp),
                metadata=own_metadata({"observation": True}),
            )
            self._add(seen, is_copied=step.is_copied_context is True)


def _first(*values: object) -> str | None:
    """The first text among values that are texts or lists of them."""
    items = [item for value in values for item in (list_of(value) or [value])]
    return next(filter(None, map(text_of, items)), None)


def _other_metrics(step: StepRecord) -> dict[str, Any] | None:
    """What of the metrics is not read, such as cost details; lists of tokens by their size alone."""
    return None if step.metrics is None else extra_of(step.metrics.extra)[1]
