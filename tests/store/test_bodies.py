"""Bodies are JSON that can be sent as it is; what is large or binary lives in blobs and comes back unchanged."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from support.exact_json import exact
from support.model_values import values_of
from support.profiles import examples
from turnlog.model import BlobRef, FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.store import bodies
from turnlog.store.bodies import PREVIEW_LENGTH, TEXT_LIMIT, ExternalContent, externalize, resolve

SIZES = st.sampled_from([0, 1, PREVIEW_LENGTH, TEXT_LIMIT - 1, TEXT_LIMIT, TEXT_LIMIT + 1, 2 * TEXT_LIMIT])

LETTERS = st.sampled_from(["x", "\u00e9", "\u6f22", "\U0001f600", "\0"])


@st.composite
def large_parts(draw: st.DrawFn) -> Part:
    """A part of any kind that may hold more than a body does."""
    text = draw(LETTERS) * draw(SIZES)
    choice = draw(st.integers(0, 4))
    if choice == 0:
        return TextPart(text=text)
    if choice == 1:
        return ReasoningPart(text=text)
    if choice == 2:
        return FilePart(media_type="image/png", data=text.encode())
    if choice == 3:
        return ToolCallPart(tool_call_id="c", tool_name="t", input_text=text)
    blocks = draw(st.lists(large_parts(), max_size=2))
    result = ToolResult(id="r", content=tuple(block for block in blocks if block.type != "tool-call"))
    value = msgspec.Raw(msgspec.json.encode({"content": text}))
    return ToolCallPart(tool_call_id="c", tool_name="t", input=value, results=(result,))


def messages(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Message]:
    return st.lists(parts, max_size=3).map(lambda found: Message(id="m", role="assistant", parts=tuple(found)))


def stored(message: Message) -> tuple[bytes, dict[str, bytes]]:
    """The body's JSON and the blobs beside it."""
    blobs: list[ExternalContent] = []
    body = bodies.pack(externalize(message, blobs))
    return body, {blob.sha256.hex(): b"".join(blob.pieces()) for blob in blobs}


def restored(body: bytes, blobs: dict[str, bytes]) -> Message:
    return resolve(bodies.decode(body), lambda reference: blobs[reference.sha256])


def has_no_reference(message: Message) -> bool:
    return b'"blob"' not in bodies.pack(message) and b'"input_blob"' not in bodies.pack(message)


@settings(max_examples=examples(40))
@given(messages(large_parts()))
def test_what_was_moved_out_comes_back_unchanged(message: Message) -> None:
    body, blobs = stored(message)
    assert restored(body, blobs) == message
    for sha256, data in blobs.items():
        assert hashlib.sha256(data).hexdigest() == sha256
    limit = TEXT_LIMIT * 4 + 1000
    assert len(body) < limit * (len(message.parts) * 3 + 1)


@settings(max_examples=examples(60))
@given(values_of(Message).filter(has_no_reference))
def test_any_message_survives_its_body_but_for_the_structured_results(message: Message) -> None:
    """R-S28: the body is the whole message; `structured` stays in the archived record."""
    body, blobs = stored(message)
    assert restored(body, blobs) == _without_structured(message)


def _without_structured(message: Message) -> Message:
    return msgspec.structs.replace(message, parts=tuple(_plain(part) for part in message.parts))


def _plain(part: Part) -> Part:
    if not isinstance(part, ToolCallPart):
        return part
    results = tuple(msgspec.structs.replace(result, structured=UNSET) for result in part.results)
    return msgspec.structs.replace(part, results=results)


@pytest.mark.parametrize("letter", ["x", "\u6f22"])
def test_a_large_text_leaves_a_preview_and_its_size(letter: str) -> None:
    text = letter * (TEXT_LIMIT + 1)
    blobs: list[ExternalContent] = []
    part = externalize(Message(id="m", role="user", parts=(TextPart(text=text),)), blobs).parts[0]
    assert isinstance(part, TextPart)
    assert part.text == letter * PREVIEW_LENGTH
    assert part.blob is not None
    assert part.blob.size == len(text.encode()) == blobs[0].size
    assert part.blob.media_type == blobs[0].media_type == bodies.TEXT_TYPE


def test_a_text_at_the_limit_stays_in_the_body() -> None:
    message = Message(id="m", role="user", parts=(TextPart(text="x" * TEXT_LIMIT),))
    blobs: list[ExternalContent] = []
    assert externalize(message, blobs) is message
    assert blobs == []


def test_a_small_image_is_never_in_the_body() -> None:
    """All binary data lives once, whatever its size: in a message and in a result."""
    image = FilePart(media_type="image/png", data=b"\x89PNG")
    result = ToolResult(id="r", content=(TextPart(text="before"), image, TextPart(text="after")))
    call = ToolCallPart(tool_call_id="c", tool_name="t", results=(result,))
    blobs: list[ExternalContent] = []
    external = externalize(Message(id="m", role="user", parts=(image, call)), blobs)
    assert [blob.data for blob in blobs] == [b"\x89PNG"] * 2
    assert blobs[0].sha256 == blobs[1].sha256
    assert b"iVBORw" not in bodies.pack(external)
    assert b'"data"' not in bodies.pack(external)


def test_a_large_input_is_exact_when_it_comes_back() -> None:
    written = b'{"z": 1,  "content":"' + b"x" * TEXT_LIMIT + b'","a":[1.0]}'
    call = ToolCallPart(tool_call_id="c", tool_name="Write", input=msgspec.Raw(written))
    body, blobs = stored(Message(id="m", role="assistant", parts=(call,)))
    part = bodies.decode(body).parts[0]
    assert isinstance(part, ToolCallPart)
    assert (part.input, part.input_text) == (UNSET, written[:PREVIEW_LENGTH].decode())
    back = restored(body, blobs).parts[0]
    assert isinstance(back, ToolCallPart)
    assert back.input_text is None
    assert exact(back.input) == written


def test_a_preview_never_cuts_a_character_in_two() -> None:
    for shift in range(4):
        written = msgspec.json.encode("y" * shift + "\U0001f600" * TEXT_LIMIT)
        call = ToolCallPart(tool_call_id="c", tool_name="t", input=msgspec.Raw(written))
        part = externalize(Message(id="m", role="user", parts=(call,)), []).parts[0]
        assert isinstance(part, ToolCallPart)
        assert part.input_text == written.decode()[:PREVIEW_LENGTH]


@pytest.mark.parametrize("field", ["text", "input_text"])
def test_a_lone_surrogate_in_a_large_text_has_its_one_representation(field: str) -> None:
    broken = "\ud83d" + "x" * TEXT_LIMIT
    known: dict[str, Any] = {
        "text": TextPart(text=broken),
        "input_text": ToolCallPart(tool_call_id="c", tool_name="t", input_text=broken),
    }
    body, blobs = stored(Message(id="m", role="user", parts=(known[field],)))
    back = restored(body, blobs).parts[0]
    assert getattr(back, field) == "\ufffd" + "x" * TEXT_LIMIT


def test_a_message_that_holds_nothing_large_is_left_as_it_is() -> None:
    message = Message(
        id="m", role="user", parts=(TextPart(text="small"), ToolCallPart(tool_call_id="c", tool_name="t"))
    )
    assert externalize(message, []) is message
    assert resolve(message, _nothing_to_load) == message


def _nothing_to_load(reference: BlobRef) -> bytes:
    raise AssertionError(reference)
