from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from support.search_store import call, result, text_message
from turnlog.model import (
    Approval,
    BlobRef,
    DataPart,
    FilePart,
    Message,
    MessageError,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.codec import encode
from turnlog.store.search.base import FIELDS
from turnlog.store.search.documents import (
    FAILED,
    HAS_IMAGE,
    MAX_DOCUMENT_SIZE,
    Document,
    ExternalText,
    documents_of,
    json_strings,
    texts_of,
)

IMAGE = FilePart(media_type="image/png", filename="shot.png", blob=BlobRef(sha256="0" * 64, size=1))


def documents(*parts: Part) -> list[Document]:
    return documents_of(encode(Message(id="m", role="assistant", parts=parts)))


def nothing(outside: ExternalText) -> Iterable[bytes]:
    raise AssertionError(outside)


def shown(*parts: Part) -> list[tuple[int, str, bytes]]:
    return [
        (document.part, FIELDS[document.field], b"|".join(texts_of(document, nothing)))
        for document in documents(*parts)
    ]


def test_every_field_of_every_part_is_a_document() -> None:
    assert shown(
        ReasoningPart(text="why"),
        TextPart(text="what"),
        call("c", "done", command="make", cwd="/src", many=["a", {"deep": "b"}], number=7, flag=True, none=None),
        FilePart(media_type="text/plain", filename="notes.txt", url="https://example.org/notes"),
    ) == [
        (0, "reasoning", b"why"),
        (1, "text", b"what"),
        (2, "input", b"make\n/src\na\nb"),
        (2, "output", b"done"),
        (3, "file", b"notes.txt\nhttps://example.org/notes"),
    ]


def test_empty_texts_are_none_but_a_call_always_has_an_input() -> None:
    assert shown(TextPart(text=""), ReasoningPart(text="", redacted=True), call("c")) == [(2, "input", b"")]


def test_all_final_results_are_one_output() -> None:
    part = msgspec.structs.replace(
        call("c"),
        results=(
            result("0", "almost", preliminary=True),
            ToolResult(id="1", content=(TextPart(text="launched"), TextPart(text="and more"))),
            ToolResult(id="2", error_text="it broke"),
            ToolResult(id="3", content=(TextPart(text="report"),), error_text="report"),
            ToolResult(id="4", content=(TextPart(text="a part"),), error_text="timed out"),
        ),
    )
    assert shown(part)[1] == (0, "output", b"launched\nand more\nit broke\nreport\na part\ntimed out")


def test_the_reason_of_a_permission_is_part_of_the_output() -> None:
    part = msgspec.structs.replace(call("c"), results=(), approval=Approval(approved=False, reason="not on Fridays"))
    assert shown(part) == [(0, "input", b""), (0, "output", b"not on Fridays")]


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((), [(0, "text", b"overloaded")]),
        ((TextPart(text="half"),), [(0, "text", b"half|overloaded")]),
        ((TextPart(text="API error: overloaded"),), [(0, "text", b"API error: overloaded")]),
        ((TextPart(text="half"), call("c")), [(0, "text", b"half"), (1, "input", b""), (1, "text", b"overloaded")]),
    ],
)
def test_why_a_call_of_the_model_failed_is_a_text(parts: tuple[Part, ...], found: list[tuple[int, str, bytes]]) -> None:
    message = Message(id="m", role="assistant", parts=parts, error=MessageError(text="overloaded"))
    documents = documents_of(encode(message))
    pieces = [(each.part, FIELDS[each.field], "|".join(map(str, each.content)).encode()) for each in documents]
    assert pieces == found
    # A hit reads the documents of its part alone.
    last = found[-1][0]
    assert documents_of(encode(message), {last}) == [each for each in documents if each.part == last]


@pytest.mark.parametrize("later", [(), (ToolResult(id="2"),)], ids=["nothing", "an end without output"])
def test_the_newest_preliminary_output_counts_where_no_other_comes(later: tuple[ToolResult, ...]) -> None:
    results = (result("0", "line one", preliminary=True), result("1", "line one and two", preliminary=True), *later)
    part = msgspec.structs.replace(call("c"), results=results)
    assert shown(part)[1] == (0, "output", b"line one and two")


def test_files_in_results_are_found_by_name() -> None:
    part = call(
        "c", ToolResult(id="r", content=(IMAGE, TextPart(text="see"), FilePart(media_type="x/y", url="data:,")))
    )
    assert shown(part) == [(0, "input", b""), (0, "output", b"see"), (0, "file", b"shot.png\n")]


def test_input_that_is_no_json_is_text() -> None:
    assert (
        shown(ToolCallPart(tool_call_id="c", tool_name="t", input_text="*** Begin Patch"))[0][2] == b"*** Begin Patch"
    )


def test_sources_data_and_unknown_parts_are_searched_as_text() -> None:
    assert shown(
        SourceUrlPart(source_id="s", url="https://example.org", title="A page"),
        SourceDocumentPart(source_id="d", media_type="application/pdf", title="A paper", filename="p.pdf"),
        DataPart(name="chart", data=msgspec.Raw(b'{"label":"growth","value":3}')),
        UnknownPart(kind="novel", data=msgspec.Raw(b'{"type":"novel","words":["once","upon"]}')),
    ) == [
        (0, "text", b"A page\nhttps://example.org"),
        (1, "text", b"A paper\np.pdf"),
        (2, "text", b"growth"),
        (3, "text", b"novel\nonce\nupon"),
    ]


def test_flags_say_what_failed_and_where_an_image_is() -> None:
    flags = [
        (document.field, document.flags, document.tool)
        for document in documents(
            TextPart(text="look"),
            call("1", "no", tool="Bash", status="error"),
            call("2", "no", tool="Bash", status="denied"),
            call("3", "stop", tool="Bash", status="aborted"),
            call("4", ToolResult(id="r", content=(IMAGE,)), tool="Read"),
            IMAGE,
        )
    ]
    assert flags == [
        (0, HAS_IMAGE, ""),
        (2, FAILED, "Bash"),
        (3, FAILED, "Bash"),
        *[(2, 0, "Bash"), (3, 0, "Bash")] * 2,
        (2, HAS_IMAGE, "Read"),
        (4, HAS_IMAGE, "Read"),
        (4, HAS_IMAGE, ""),
    ]


def test_texts_outside_the_body_are_read_when_they_are_wanted() -> None:
    blob = BlobRef(sha256="ab" * 32, size=9, media_type="text/plain; charset=utf-8")
    json_blob = BlobRef(sha256="cd" * 32, size=9, media_type="application/json")
    parts = (
        TextPart(text="preview", blob=blob),
        ToolCallPart(
            tool_call_id="c",
            tool_name="Write",
            input_text="{prev",
            input_blob=json_blob,
            results=(result("r", "head", spilled_to="c.txt"),),
        ),
    )
    asked: list[ExternalText] = []

    def load(outside: ExternalText) -> Iterable[bytes]:
        asked.append(outside)
        return [b'{"content":"long"}'] if outside.is_json else [b"the ", b"whole"]

    found = documents(*parts)
    assert [b"".join(texts_of(document, load)) for document in found] == [b"the whole", b"long", b"head\nthe whole"]
    assert [(outside.sha256, outside.spill) for outside in asked] == [
        (blob.sha256, None),
        (json_blob.sha256, None),
        (None, "c.txt"),
    ]
    assert [document.inline_text for document in found] == ["preview", "{prev", "head\n"]


@pytest.mark.parametrize(("word", "separator"), [("word", b"\n"), ("word", b" "), ("x中", b"")])
def test_a_text_that_is_too_long_is_cut_between_words(word: str, separator: bytes) -> None:
    whole = separator.join([word.encode()] * (MAX_DOCUMENT_SIZE // 2))
    document = Document(0, 3, 0, "", (ExternalText(sha256="x"),))
    texts = list(texts_of(document, lambda outside: [whole[:1000], whole[1000:]]))
    assert b"".join(texts) == whole
    assert len(texts) >= 2
    for text in texts:
        assert len(text) <= MAX_DOCUMENT_SIZE
        text.decode()
    if separator:
        assert all(text.endswith(separator) for text in texts[:-1])


@pytest.mark.parametrize("body", [{"parts": [{"type": "text", "text": 7}, "odd", "words"]}, ["only", {"a": "list"}]])
def test_a_body_that_reads_oddly_is_searched_whole(body: Any) -> None:
    (document,) = documents_of(json.dumps(body).encode())
    assert document.inline_text in ("text\nodd\nwords", "only\nlist")


@pytest.mark.parametrize("data", [b"", b"{torn", b"\xff", b"[" * 100_000, b'"\\ud800"'])
def test_what_is_no_json_has_no_strings(data: bytes) -> None:
    assert json_strings(data) == []


def test_surrogates_of_a_message_are_stored_as_replacement_characters() -> None:
    body = encode(text_message("m", "a \ud800 b"))
    assert documents_of(body)[0].inline_text == "a \ufffd b"
