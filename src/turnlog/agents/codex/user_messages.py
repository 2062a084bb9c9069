"""Messages that the model did not write: prompts, injected context, messages between agents."""

from __future__ import annotations

import re

from turnlog.agents.codex import NAME
from turnlog.agents.codex.fold_context import TURN_ORIGINS, CodexContext, CountedAs
from turnlog.agents.codex.records import CodexContent, CodexEvent, Item, TurnItem
from turnlog.agents.codex.responses_api import IMAGE_MARKS, file_of, parts_of, text_of
from turnlog.agents.codex.state import derived_id, id_in_thread, text_key
from turnlog.agents.codex.tool_results import end_calls, output_text
from turnlog.agents.codex.tools import metadata_of
from turnlog.agents.decoding import raw_at
from turnlog.model import Message, Origin, Part, Role, TextPart
from turnlog.model.session import title_from

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
"""How texts with role `user` begin that are no prompts, where no metadata says so."""

_TAGS = tuple(start for start, _ in TAGGED)

USER_KIND_PREFIX = "user."
"""Beginning of the `content_item_kinds` of what a person wrote."""

ORIGIN_OF_KIND: dict[str, Origin] = {
    "compaction.summary": Origin.COMPACTION,
    "user_shell_command": Origin.SHELL,
    "subagent.notification": Origin.NOTIFICATION,
    "user.goal": Origin.COMMAND,
}
"""`content_item_kinds` that name the origin. Any other kind only says whether a person or Codex wrote it."""

_ITEM, _EVENT = "item", "event"
"""Which stream has a prompt that the other one does not have yet: the beginning of keys in `unmatched_prompts`."""


def read_message(context: CodexContext, item: Item) -> None:
    """Read a `message` item that the model did not write: a prompt or injected context."""
    text = text_of(item.content)
    origin = _origin_of(context, item, text)
    _link_reviewed(context, text)
    is_prompt = origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT)
    role: Role = "system" if item.role == "system" else "user" if origin in TURN_ORIGINS else "developer"
    own_text = prompt_text(item.content)
    key = text_key(own_text)
    # The log has a prompt twice, as item and as event, in either order: the second is joined with the first.
    message_id = context.state.unmatched_prompts.pop(f"{_EVENT}:{key}", None) if is_prompt else None
    known = message_id is not None
    if message_id is None:
        if is_prompt:
            _begin_turn(context, text)
        message_id = _id_of(context, item, role, text)
        if is_prompt:
            context.state.remember_unmatched_prompt(f"{_ITEM}:{key}", message_id)
            context.state.remember_prompt(message_id, key)
    message = Message(
        id=message_id,
        role=role,
        parts=parts_of(item.content, message_id, lambda index: raw_at(context.payload, "content", index)),
        origin=origin,
        created_at=context.written_at,
        metadata={NAME: item.others} if item.others else {},
    )
    if known:
        context.emit_again(message, context.position)
        context.changes.counts.duplicates += 1
        return
    if is_prompt:
        set_prompt_title(context, own_text)
    context.add_message(message)
    context.changes.counts.messages += 1


def read_user_message(context: CodexContext, event: CodexEvent) -> CountedAs:
    """Read a `user_message` event: a prompt as the person typed it. From 0.39 to 0.14x its item comes before it."""
    return _on_prompt(context, event.message or "", [url for url in event.images or () if url])


def read_user_item(context: CodexContext, item: TurnItem) -> CountedAs:
    """Read a `UserMessage` item, which newer logs have instead of the event."""
    pieces = item.content or []
    text = "\n".join([piece.text for piece in pieces if piece.text is not None])
    return _on_prompt(context, text, [piece.image_url for piece in pieces if piece.image_url])


def _on_prompt(context: CodexContext, text: str, images: list[str]) -> CountedAs:
    """Match a prompt with its item. A prompt whose item was not read becomes a message by this record."""
    state = context.state
    key = text_key(text)
    if state.unmatched_prompts.pop(f"{_ITEM}:{key}", None) is not None:
        return "duplicates"
    if _is_reviewers_prompt(context):
        return "events"
    # The two records of a prompt are adjacent. Context and marks of images make the item differ from the typed text.
    if _drop_newest_item(state.unmatched_prompts):
        return "duplicates"
    _link_reviewed(context, text)
    _begin_turn(context, text)
    message_id = derived_id(context.id_prefix, state.turn_key, "user", text, state.text_counts)
    state.remember_unmatched_prompt(f"{_EVENT}:{key}", message_id)
    parts: list[Part] = [TextPart(id=f"{message_id}.0", text=text)]
    for number, url in enumerate(images, 1):
        file = file_of(url, f"{message_id}.{number}")
        if file is not None:
            parts.append(file)
    origin = _prompt_origin(context)
    context.add_message(
        Message(id=message_id, role="user", parts=tuple(parts), origin=origin, created_at=context.written_at)
    )
    set_prompt_title(context, text)
    return "messages"


_TRANSCRIPT_END = re.compile(r"^>>> TRANSCRIPT(?: DELTA)? END$", re.MULTILINE)
_REVIEWED = re.compile(r"^Reviewed (?:Codex )?session id: *(\S+) *$", re.MULTILINE)


def _link_reviewed(context: CodexContext, text: str) -> None:
    """Link a subagent that no record has linked with the thread whose call its prompt asks to approve (0.128).

    The prompt begins with that thread's conversation, which may contain the same words.
    """
    state = context.state
    if not state.lacks_parent or not context.is_own:
        return
    ends = [found.end() for found in _TRANSCRIPT_END.finditer(text)]
    found = _REVIEWED.search(text, ends[-1] if ends else 0)
    if found is not None:
        state.lacks_parent = False
        context.link("subagent", found[1], context.external_id)


def _is_reviewers_prompt(context: CodexContext) -> bool:
    """Whether a prompt is the one of a review by another thread, which has it in its own log.

    Up to 0.14x only its place, within a review, says so.
    """
    if context.state.reviewing:
        context.state.reviewed_elsewhere = True
    return context.state.reviewing


def _begin_turn(context: CodexContext, text: str) -> None:
    """Begin a turn with a prompt, where no record has begun it."""
    # A call without a result has ended with its process: while a call runs, a prompt waits for it.
    if context.state.turn_id is None and end_calls(context, aborted=True):
        context.end_process()
    context.set_turn(None, text)


def _drop_newest_item(unmatched: dict[str, str]) -> bool:
    """Match an event with the newest prompt when that waits for one, though the texts differ. Returns whether it did.

    The text that the model got may differ from the text that the person typed.
    """
    newest = next(reversed(unmatched), None)
    if newest is None or not newest.startswith(_ITEM):
        return False
    del unmatched[newest]
    return True


def read_agent_message(context: CodexContext, item: Item) -> None:
    """Read `agent_message`: a message from one agent of a team to another (since 0.15x)."""
    state = context.state
    # Any agent of a team may write to this one. Only a message that triggers a turn is its task.
    trigger, state.trigger_turn = state.trigger_turn, False
    is_task = trigger and state.is_subagent
    text = text_of(item.content)
    message_id = _id_of(context, item, "user", f"{item.author}\0{item.recipient}\0{text}")
    facts = {**(item.others or {}), "author": item.author, "recipient": item.recipient}
    context.add_message(
        Message(
            id=message_id,
            role="user" if is_task else "developer",
            parts=parts_of(item.content, message_id, lambda index: raw_at(context.payload, "content", index)),
            origin=Origin.SUBAGENT_PROMPT if is_task else Origin.NOTIFICATION,
            created_at=context.written_at,
            metadata={NAME: {name: value for name, value in facts.items() if value is not None}},
        )
    )
    context.changes.counts.messages += 1


def read_context(context: CodexContext, item: Item) -> None:
    """Read an output without a call: context that Codex injects in the form of one (since 0.16x, the goal)."""
    text = output_text(item.output)
    message_id = _id_of(context, item, "developer", text)
    part = TextPart(id=f"{message_id}.0", text=text)
    facts = metadata_of({**(item.others or {}), "name": item.name, "namespace": item.namespace})
    context.add_message(
        Message(
            id=message_id,
            role="developer",
            parts=(part,),
            origin=Origin.HARNESS,
            created_at=context.written_at,
            metadata={NAME: facts} if facts else {},
        )
    )
    context.changes.counts.messages += 1


def read_spawned(context: CodexContext, text: str) -> None:
    """Add the text that instructs a subagent: in its copy, it is the output of the call that spawned it."""
    message_id = derived_id(context.external_id, context.state.turn_key, "developer", text, context.state.text_counts)
    part = TextPart(id=f"{message_id}.0", text=text)
    context.add_message(
        Message(id=message_id, role="developer", parts=(part,), origin=Origin.HARNESS, created_at=context.written_at)
    )
    context.changes.counts.messages += 1


def origin_of_text(text: str) -> Origin | None:
    """The origin of a text with role `user` by its beginning; None if a person may have typed it."""
    stripped = text.lstrip()
    if not stripped.startswith(_TAGS):
        return None
    return next((origin for start, origin in TAGGED if stripped.startswith(start)), None)


def _origin_of(context: CodexContext, item: Item, text: str) -> Origin:
    # Only the item of a person, of a parent or of Codex in their place has the role `user`.
    if item.role != "user" or _is_attached_image(context, item):
        return Origin.HARNESS
    kinds = item.passthrough.content_item_kinds if item.passthrough else None
    by_text = origin_of_text(text)
    # Since 0.14x `content_item_kinds` decides. Before that only the beginning of the text does.
    if kinds:
        if any(kind.startswith(USER_KIND_PREFIX) and kind not in ORIGIN_OF_KIND for kind in kinds):
            by_text = by_text if by_text is Origin.SHELL else None
        else:
            return next((ORIGIN_OF_KIND[kind] for kind in kinds if kind in ORIGIN_OF_KIND), by_text or Origin.HARNESS)
    if by_text is not None:
        return by_text
    return _prompt_origin(context)


def _prompt_origin(context: CodexContext) -> Origin:
    """The origin of a prompt: in a subagent's log its parent wrote it, except in turns that a person began there."""
    state = context.state
    is_parents = state.is_subagent and context.is_own and not state.begun_by_user
    return Origin.SUBAGENT_PROMPT if is_parents else Origin.PROMPT


def _is_attached_image(context: CodexContext, item: Item) -> bool:
    """Whether a message is the image that a tool has just attached. Up to about 0.9x only its place says so."""
    state = context.state
    is_attached = state.attached_images > 0 and not prompt_text(item.content)
    state.attached_images = state.attached_images - 1 if is_attached else 0
    if is_attached:
        state.remember_unmatched_prompt(f"{_ITEM}:", "")
    return is_attached


def _id_of(context: CodexContext, item: Item, role: str, text: str) -> str:
    if item.id is not None:
        return id_in_thread(context.id_prefix, item.id)
    return derived_id(context.id_prefix, context.state.turn_key, role, text, context.state.text_counts)


def prompt_text(content: list[CodexContent] | str | None) -> str:
    """The text of a prompt, without the marks around its images."""
    if isinstance(content, str):
        return content
    texts = [piece.text for piece in content or () if piece.text is not None]
    words = (_IMAGE_MARK.sub("", text) if text.startswith(IMAGE_MARKS) else text for text in texts)
    return "\n".join([text for text in words if text])


_IMAGE_MARK = re.compile(r"</?image\b[^>]*>\s*")


_EDITOR_CONTEXT = "# Context from my IDE setup:"
_REQUEST = "## My request for Codex:"


def set_prompt_title(context: CodexContext, text: str) -> None:
    """Set the session's title to its first prompt."""
    state = context.state
    # An editor puts what is open in it before the prompt (IDE extension).
    _, _, request = text.partition(_REQUEST) if text.startswith(_EDITOR_CONTEXT) else ("", "", "")
    title = title_from(request.strip() or text) if context.is_own and not state.titled else ""
    if title:
        state.titled = True
        context.session.titles["prompt"] = title
