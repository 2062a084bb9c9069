"""History -> UI messages -> history: nothing is lost on the way, whatever the history holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.model_values import values_of
from support.profiles import examples, of_view, some_of
from support.recorded_sessions import recorded_sessions
from turnlog.aisdk.convert import to_ui_json
from turnlog.aisdk.receive import MismatchError, restore_messages
from turnlog.model import Message, Origin, TextPart
from turnlog.model.codec import decode_message, encode

VIEWS: list[dict[str, Any]] = [
    {},
    {"merge_steps": False},
    {"version": 5},
    {"version": 7, "tools": "named"},
    {"developer": "user"},
    {"developer": "system", "merge_steps": False},
]


def there_and_back(messages: list[Message], **view: Any) -> list[Message]:
    found = to_ui_json([encode(message) for message in messages], **view)
    return [message for ui_message in found.messages for message in restore_messages(ui_message) or ()]


def rewritten(ui_message: bytes) -> bytes:
    """As another program writes it: every key and text in another form."""
    return json.dumps(json.loads(ui_message), indent=1).encode()


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_every_recorded_session_comes_back(view: dict[str, Any]) -> None:
    for session, messages in of_view([*recorded_sessions().items()], VIEWS.index(view), len(VIEWS)):
        assert there_and_back(list(messages), **view) == list(messages), session


def test_every_recorded_session_comes_back_from_another_program() -> None:
    for session, messages in some_of([*recorded_sessions().items()], 20):
        found = to_ui_json([encode(message) for message in messages]).messages
        again = [message for ui_message in found for message in restore_messages(rewritten(ui_message)) or ()]
        wanted = [json.loads(encode(message)) for message in messages]
        assert [json.loads(encode(message)) for message in again] == wanted, session


@settings(max_examples=examples(300))
@given(st.lists(values_of(Message), max_size=4), st.sampled_from(VIEWS))
def test_every_history_comes_back(messages: list[Message], view: dict[str, Any]) -> None:
    known = [decode_message(encode(message)) for message in messages]
    assert there_and_back(known, **view) == known


def test_a_message_without_our_metadata_is_not_ours() -> None:
    assert restore_messages(b'{"id":"a","role":"user","parts":[{"type":"text","text":"hi"}]}') is None
    assert restore_messages(b'{"id":"a","role":"user","metadata":7,"parts":[]}') is None


CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda ui: ui["parts"].pop(),
    lambda ui: ui["parts"].append({"type": "text", "text": "more"}),
    lambda ui: ui["parts"].insert(0, {"type": "text", "text": "more"}),
    lambda ui: ui["parts"][0].pop("text"),
    lambda ui: ui["parts"][0].update(type="reasoning"),
    lambda ui: ui["parts"][0].update(type="data-turnlog-message"),
    lambda ui: ui["metadata"]["turnlog"].update(messages=[{}]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_parts_that_somebody_changed_are_not_those_of_the_metadata(change: Callable[[dict[str, Any]], object]) -> None:
    message = Message(id="m", role="user", origin=Origin.PROMPT, parts=(TextPart(text="hi"),))
    ui = json.loads(to_ui_json([encode(message)]).messages[0])
    change(ui)
    with pytest.raises(MismatchError):
        restore_messages(json.dumps(ui).encode())
