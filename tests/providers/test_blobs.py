"""Contents that a store keeps outside of a message are in the request again."""

from typing import Any

import pytest

from support.provider_messages import MODEL, PNG, assistant, call, image, result, user
from turnlog.errors import NotFoundError
from turnlog.model import BlobRef, FilePart, Message, ReasoningPart, TextPart, ToolCallPart
from turnlog.model.codec import to_json
from turnlog.providers.base import Report, RequestOptions
from turnlog.providers.files import load_blobs

CONTENTS = {"text": "whole ü".encode(), "json": b'{"a":1}', "image": PNG}


def load(reference: BlobRef) -> bytes:
    if reference.sha256 not in CONTENTS:
        raise NotFoundError("no such blob")
    return CONTENTS[reference.sha256]


def reference(sha256: str, media_type: str | None = None) -> BlobRef:
    return BlobRef(sha256=sha256, size=100, media_type=media_type)


def loaded(*messages: Message, loader: Any = load) -> tuple[list[Message], list[str]]:
    report = Report()
    found = load_blobs(messages, RequestOptions(model=MODEL, load_blob=loader), report)
    return found, [loss.kind for loss in report.losses]


def shortened(**fields: Any) -> ToolCallPart:
    return ToolCallPart(tool_call_id="c1", tool_name="t", **fields)


def test_everything_is_in_its_place() -> None:
    preview = TextPart(text="who", blob=reference("text"))
    whole = TextPart(text="whole ü")
    json = reference("json", "application/json")
    history = [
        user(preview, FilePart(media_type="image/png", blob=reference("image"))),
        assistant(
            ReasoningPart(text="who", blob=reference("text")),
            shortened(input_text="{", input_blob=json, results=(result(preview, id="r"),)),
            shortened(input_text="w", input_blob=reference("text", "text/plain")),
        ),
    ]
    messages, losses = loaded(*history)
    assert losses == []
    assert messages == [
        user(whole, FilePart(media_type="image/png", data=PNG)),
        assistant(
            ReasoningPart(text="whole ü"),
            shortened(input=to_json({"a": 1}), results=(result(whole, id="r"),)),
            shortened(input_text="whole ü"),
        ),
    ]


@pytest.mark.parametrize("loader", [None, load])
def test_where_there_is_no_more_than_a_preview_it_is_reported(loader: Any) -> None:
    history = [user(TextPart(text="who", blob=reference("gone")))]
    assert loaded(*history, loader=loader) == (history, ["preview-only"])


def test_data_addresses_are_bytes() -> None:
    def address(url: str) -> FilePart:
        return FilePart(media_type="image/png", url=url)

    messages, _ = loaded(user(address("data:image/png;base64,eA=="), address("data:,x"), address("data:;base64,?")))
    assert [part.data if isinstance(part, FilePart) else None for part in messages[0].parts] == [b"x", None, None]


def test_files_on_the_machine_are_requested() -> None:
    here, gone = (FilePart(media_type="image/png", url=f"file:///{name}.png") for name in ("here", "gone"))
    options = RequestOptions(model=MODEL, load_file=lambda part: PNG if part is here else None)
    (message,) = load_blobs([user(here, gone)], options, Report())
    assert message.parts == (FilePart(media_type="image/png", data=PNG), gone)
    assert load_blobs([user(here)], RequestOptions(model=MODEL), Report()) == [user(here)]


def test_what_is_whole_stays_as_it_is() -> None:
    history = [user("q", image()), assistant("a", call("c1", result("r")))]
    assert loaded(*history) == (history, [])
