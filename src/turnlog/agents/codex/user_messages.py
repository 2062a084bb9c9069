"""Messages that the model did not write: prompts, what the harness injects, messages between agents."""

from __future__ import annotations

from turnlog.agents.codex import identity
from turnlog.agents.codex.fold_context import TURNS_BEGIN, Reading, Told
from turnlog.agents.codex.records import Content, Event, Item, TurnItem
from turnlog.agents.codex.responses_api import IMAGE_MARKS, file_of, parts_of, text_of
from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.tool_results import end_calls, output_text
from turnlog.agents.codex.tools import metadata_of
from turnlog.agents.decoding import raw_at
from turnlog.model import Message, Origin, Part, Role, TextPart

TAGGED: tuple[tuple[str, Origin], ...] = (
    ("<user_shell_command>", Origin.SHELL),
    ("<subagent_notification>", Origin.NOTIFICATION),
    ("<environment_context>", Origin.HARNESS),
    ("<user_instructions>", Origin.HARNESS),
    ("<turn_aborted>", Origin.HARNESS),
    ("<skills_instructions>", Origin.HARNESS),
    ("<skill>", Origin.HARNESS),
    ("<permissions instructions>", Origin.HARNESS),
    ("<collaboration_mode>", Origin.HARNESS),
    ("<model_switch>", Origin.HARNESS),
    ("<personality_spec>", Origin.HARNESS),
    ("<hook_prompt", Origin.HARNESS),
    ("<goal_context>", Origin.HARNESS),
    ("<user_action>", Origin.HARNESS),
    ("<apps_instructions>", Origin.HARNESS),
    ("<plugins_instructions>", Origin.HARNESS),
    ("<INSTRUCTIONS>", Origin.HARNESS),
    ("# AGENTS.md instructions", Origin.HARNESS),
    ("Warning: The maximum number of ", Origin.HARNESS),
    ("Another language model started to solve this problem", Origin.COMPACTION),
)
"""How texts of user messages begin that no person typed, or not as a prompt, where no metadata says so."""

_TAGS = tuple(start for start, _ in TAGGED)

SAID_KINDS = "user."
"""Beginning of the `content_item_kinds` of what a person said."""

ORIGIN_OF_KIND: dict[str, Origin] = {
    "compaction.summary": Origin.COMPACTION,
    "user_shell_command": Origin.SHELL,
    "subagent.notification": Origin.NOTIFICATION,
    "user.goal": Origin.COMMAND,
}
"""`content_item_kinds` that say more than that a person or the harness wrote it."""

_ITEM, _EVENT = "item", "event"


def read_message(reading: Reading, item: Item) -> None:
    """A `message` item that is not the model's."""
    text = text_of(item.content)
    origin = _origin_of(reading, item, text)
    is_said = origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT)
    role: Role = "system" if item.role == "system" else "user" if origin in TURNS_BEGIN else "developer"
    said = said_text(item.content)
    key = identity.text_key(said)
    message_id = reading.state.heard.pop(f"{_EVENT}:{key}", None) if is_said else None
    known = message_id is not None
    if message_id is None:
        if is_said:
            _begin_turn(reading, text)
        message_id = _id_of(reading, item, role, text)
        if is_said:
            reading.state.remember_heard(f"{_ITEM}:{key}", message_id)
            reading.state.remember_prompt(message_id, key)
    message = Message(
        id=message_id,
        role=role,
        parts=parts_of(item.content, message_id, lambda index: raw_at(reading.payload, "content", index)),
        origin=origin,
        created_at=reading.at,
        metadata={NAME: item.others} if item.others else {},
    )
    if known:
        reading.add_again(message, reading.position)
        reading.changes.counts.duplicates += 1
        return
    if is_said:
        _name_session(reading, said)
    reading.add_message(message)
    reading.changes.counts.messages += 1


def read_user_message(reading: Reading, event: Event) -> Told:
    """`user_message`: a prompt as the person saw it; its item stands before it, from 0.39 to 0.14x."""
    return _hear(reading, event.message or "", [url for url in event.images or () if url])


def read_user_item(reading: Reading, item: TurnItem) -> Told:
    """`UserMessage`: the same in newer logs."""
    pieces = item.content or []
    text = "\n".join([piece.text for piece in pieces if piece.text is not None])
    return _hear(reading, text, [piece.image_url for piece in pieces if piece.image_url])


def _hear(reading: Reading, text: str, images: list[str]) -> Told:
    """Find the prompt's item; a prompt that has none yet is told by this record."""
    state = reading.state
    key = identity.text_key(text)
    if state.heard.pop(f"{_ITEM}:{key}", None) is not None:
        return "duplicates"
    if _is_of_reviewer(reading):
        return "events"
    if _forget_newest(state.heard):
        return "duplicates"
    _begin_turn(reading, text)
    message_id = identity.made_up(reading.thread, state.turn_key, "user", text, state.said)
    state.remember_heard(f"{_EVENT}:{key}", message_id)
    parts: list[Part] = [TextPart(id=f"{message_id}.0", text=text)]
    for number, url in enumerate(images, 1):
        file = file_of(url, f"{message_id}.{number}")
        if file is not None:
            parts.append(file)
    origin = _who_asked(reading)
    reading.add_message(Message(id=message_id, role="user", parts=tuple(parts), origin=origin, created_at=reading.at))
    _name_session(reading, text)
    return "messages"


def _is_of_reviewer(reading: Reading) -> bool:
    """A review's own prompt is told in the log of the thread that asked for it too; up to 0.14x its place says so."""
    if reading.state.reviewing:
        reading.state.reviewed_apart = True
    return reading.state.reviewing


def _begin_turn(reading: Reading, text: str) -> None:
    """A prompt begins a turn where no record says so; a call that is open then was killed with its process."""
    if reading.state.turn_id is None and end_calls(reading, aborted=True):
        reading.end_process()
    reading.begin_turn_key(None, text)


def _forget_newest(heard: dict[str, str]) -> bool:
    """Whether the newest prompt waits for its event: the event's words may differ from what the model got."""
    newest = next(reversed(heard), None)
    if newest is None or not newest.startswith(_ITEM):
        return False
    del heard[newest]
    return True


def read_agent_message(reading: Reading, item: Item) -> None:
    """`agent_message`: what one agent of a team told another (since 0.15x)."""
    state = reading.state
    trigger, state.trigger = state.trigger, False
    is_task = trigger and state.is_subagent
    text = text_of(item.content)
    message_id = _id_of(reading, item, "user", f"{item.author}\0{item.recipient}\0{text}")
    facts = {**(item.others or {}), "author": item.author, "recipient": item.recipient}
    reading.add_message(
        Message(
            id=message_id,
            role="user" if is_task else "developer",
            parts=parts_of(item.content, message_id, lambda index: raw_at(reading.payload, "content", index)),
            origin=Origin.SUBAGENT_PROMPT if is_task else Origin.NOTIFICATION,
            created_at=reading.at,
            metadata={NAME: {name: value for name, value in facts.items() if value is not None}},
        )
    )
    reading.changes.counts.messages += 1


def read_context(reading: Reading, item: Item) -> None:
    """An output that no call asked for: what the harness tells the model as if a tool had (since 0.16x, the goal)."""
    text = output_text(item.output)
    message_id = _id_of(reading, item, "developer", text)
    part = TextPart(id=f"{message_id}.0", text=text)
    facts = metadata_of({**(item.others or {}), "name": item.name, "namespace": item.namespace})
    reading.add_message(
        Message(
            id=message_id,
            role="developer",
            parts=(part,),
            origin=Origin.HARNESS,
            created_at=reading.at,
            metadata={NAME: facts} if facts else {},
        )
    )
    reading.changes.counts.messages += 1


def read_spawned(reading: Reading, text: str) -> None:
    """What a subagent is told, in its copy of its parent's log, in the place of the output of the call that made it."""
    message_id = identity.made_up(reading.external_id, reading.state.turn_key, "developer", text, reading.state.said)
    part = TextPart(id=f"{message_id}.0", text=text)
    reading.add_message(
        Message(id=message_id, role="developer", parts=(part,), origin=Origin.HARNESS, created_at=reading.at)
    )
    reading.changes.counts.messages += 1


def origin_of_text(text: str) -> Origin | None:
    """What a text of the user's role is by its beginning; None when a person may have typed it."""
    stripped = text.lstrip()
    if not stripped.startswith(_TAGS):
        return None
    return next((origin for start, origin in TAGGED if stripped.startswith(start)), None)


def _origin_of(reading: Reading, item: Item, text: str) -> Origin:
    if item.role != "user" or _is_attached(reading, item):
        return Origin.HARNESS
    kinds = item.passthrough.content_item_kinds if item.passthrough else None
    told = origin_of_text(text)
    if kinds:
        if any(kind.startswith(SAID_KINDS) and kind not in ORIGIN_OF_KIND for kind in kinds):
            told = told if told is Origin.SHELL else None
        else:
            return next((ORIGIN_OF_KIND[kind] for kind in kinds if kind in ORIGIN_OF_KIND), told or Origin.HARNESS)
    if told is not None:
        return told
    return _who_asked(reading)


def _who_asked(reading: Reading) -> Origin:
    """What is asked in a subagent's log is its parent's, but in turns that a person began there."""
    state = reading.state
    is_parents = state.is_subagent and reading.is_own and not state.by_person
    return Origin.SUBAGENT_PROMPT if is_parents else Origin.PROMPT


def _is_attached(reading: Reading, item: Item) -> bool:
    """Whether it is the image that a tool has just attached: up to about 0.9x nothing but its place says so."""
    state = reading.state
    is_attached = state.attached > 0 and not said_text(item.content)
    state.attached = state.attached - 1 if is_attached else 0
    if is_attached:
        state.remember_heard(f"{_ITEM}:", "")
    return is_attached


def _id_of(reading: Reading, item: Item, role: str, text: str) -> str:
    if item.id is not None:
        return identity.named(reading.thread, item.id)
    return identity.made_up(reading.thread, reading.state.turn_key, role, text, reading.state.said)


def said_text(content: list[Content] | str | None) -> str:
    """The words of a prompt, without the marks around its images."""
    if isinstance(content, str):
        return content
    texts = [piece.text for piece in content or () if piece.text is not None]
    return "\n".join([text for text in texts if not text.startswith(IMAGE_MARKS)])


def _name_session(reading: Reading, text: str) -> None:
    """The first prompt is the title of a session that has no other."""
    state = reading.state
    if not state.titled and reading.is_own and text.strip():
        state.titled = True
        reading.session.titles["prompt"] = text.strip()
