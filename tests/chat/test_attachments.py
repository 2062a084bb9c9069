"""What users attach reaches the model, or the page is told why not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.chat_script import drain, post
from support.next_turns import MODELS, PNG, Model
from turnlog.aisdk.chunks import ErrorChunk
from turnlog.aisdk.sse import decode_chunks
from turnlog.chat import Chat, LossReport, MemoryKeeper, ProviderRuntime, RequestOptions, RunRequest
from turnlog.model import DataPart, FilePart

PDF = {"type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "url": ""}
UPLOAD = {"type": "file", "mediaType": "image/png", "filename": "b.png", "url": "/uploads/b.png"}
TEXT = {"type": "text", "text": "summarise"}


async def asked(provider: str, *turns: list[dict[str, Any]], **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The requests of a chat, and the errors that its page got."""
    model = Model(provider)
    chat = Chat(ProviderRuntime(provider, RequestOptions(model=MODELS[provider]), model, **options), MemoryKeeper())
    errors: list[str] = []
    for number, parts in enumerate(turns):
        data = await drain(await chat.post(post(message={"id": f"u{number}", "role": "user", "parts": parts})))
        errors += [chunk.error_text for chunk in decode_chunks(data) if isinstance(chunk, ErrorChunk)]
    return model.requests, errors


@pytest.mark.parametrize(
    ("provider", "owner", "sent"),
    [
        ("anthropic", "anthropic", {"type": "document", "source": {"type": "file", "file_id": "f1"}, "title": "a.pdf"}),
        ("responses", "openai", {"type": "input_file", "file_id": "f1"}),
        ("openai-chat", "openai", {"type": "file", "file": {"file_id": "f1"}}),
        ("gemini", "google", {"fileData": {"mimeType": "application/pdf", "fileUri": "f1"}}),
    ],
)
def test_a_file_that_the_provider_has_is_named_by_its_id(provider: str, owner: str, sent: dict[str, Any]) -> None:
    references = {"providerReference": {owner: "f1", "another": "f2"}}
    requests, errors = asyncio.run(asked(provider, [TEXT, PDF | references]))
    assert errors == []
    assert json.dumps(sent) in json.dumps(requests)
    requests, errors = asyncio.run(asked(provider, [TEXT, PDF | {"providerReference": {"another": "f2"}}], [TEXT]))
    assert ["another" in error for error in errors] == [True]
    # The chat goes on, and the model learns that there was a file.
    assert len(requests) == 1
    assert "a.pdf" in json.dumps(requests)


def test_a_file_of_the_application_is_loaded_by_its_function() -> None:
    given: list[tuple[str | None, str]] = []

    def load(file: FilePart, request: RunRequest) -> bytes | None:
        given.append((file.url, request.chat_id))
        return PNG if file.url == "/uploads/b.png" else None

    requests, errors = asyncio.run(asked("anthropic", [UPLOAD], [TEXT], load_file=load))
    assert errors == []
    assert [json.dumps(request).count("iVBORw0KGgo") for request in requests] == [1, 1]
    assert given[0] == ("/uploads/b.png", "chat")
    missing = UPLOAD | {"url": "file:///etc/passwd"}
    requests, errors = asyncio.run(asked("anthropic", [missing], load_file=load))
    assert (requests, ["/etc/passwd" in error for error in errors]) == ([], [True])


def test_no_file_of_the_server_is_read_because_a_page_names_it() -> None:
    read: list[FilePart] = []

    def load_file(part: FilePart) -> bytes | None:
        read.append(part)
        return b"secret"

    async def run() -> None:
        model = Model("anthropic")
        options = RequestOptions(model="m", load_file=load_file)
        chat = Chat(ProviderRuntime("anthropic", options, model), MemoryKeeper())
        for number, part in enumerate((UPLOAD | {"url": "file:///etc/passwd"}, TEXT)):
            await drain(await chat.post(post(message={"id": f"u{number}", "role": "user", "parts": [part]})))
        assert len(model.requests) == 1

    asyncio.run(run())
    assert read == []


def test_data_of_a_user_is_sent_as_the_application_writes_it() -> None:
    data = {"type": "data-place", "data": {"city": "Rome"}}
    requests, errors = asyncio.run(asked("anthropic", [data]))
    assert ('[data-place]\\n{\\"city\\":\\"Rome\\"}' in json.dumps(requests), errors) == (True, [])

    async def write(part: DataPart, request: RunRequest) -> str | None:
        return f"It is {part.name}." if part.name == "place" else None

    left_out = {"type": "data-other", "data": 1}
    reports: list[LossReport] = []
    requests, errors = asyncio.run(
        asked("anthropic", [data, left_out], [TEXT], write_data=write, on_losses=reports.append)
    )
    assert [("It is place." in json.dumps(request), "other" in json.dumps(request)) for request in requests] == [
        (True, False)
    ] * 2
    # Once, however many requests repeat it.
    assert [[loss.kind for loss in report.losses] for report in reports] == [["data"]]


@pytest.mark.parametrize("provider", MODELS)
def test_an_empty_message_is_refused_and_the_next_one_answered(provider: str) -> None:
    requests, errors = asyncio.run(asked(provider, [{"type": "text", "text": " \n"}], [TEXT]))
    assert ["empty" in error for error in errors] == [True]
    assert len(requests) == 1


def test_a_failing_function_for_losses_costs_no_answer() -> None:
    def fail(report: LossReport) -> None:
        raise OSError("no disk")

    sound = {"type": "file", "mediaType": "video/mp4", "filename": "c.mp4", "url": "data:video/mp4;base64,AAAA"}
    requests, errors = asyncio.run(asked("anthropic", [TEXT, sound], on_losses=fail))
    assert ("c.mp4" in json.dumps(requests), errors) == (True, [])
