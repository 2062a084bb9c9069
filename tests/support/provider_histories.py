"""Random histories as damage and interrupts leave them: missing, double and empty results, odd orders, odd names."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from support.provider_messages import MODEL, PNG
from turnlog.model import (
    BlobRef,
    Citation,
    DataPart,
    FilePart,
    Message,
    MessageError,
    Origin,
    Part,
    ProviderData,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.codec import to_json

_known_words = ["", " ", "\n", "a", "b ", "ü\ud800", "two\nlines", "</thinking>", "x" * 200, "\x00", "\ufeff", "\u2028"]
words = st.sampled_from(_known_words) | st.text(st.characters(categories=["Cs", "Cc", "Zs", "Ll"]), max_size=3)
models = st.sampled_from([MODEL, MODEL, "another-model", "claude-x-20250101", "", "\ud800", None])
_known_ids = [
    "c1",
    "c2",
    "c3",
    "c4",
    "functions.bash:0",
    "",
    "toolu_" + "x" * 80,
    "ä",
    "c1\n",
    "ws_1",
    "srvtoolu_1",
    "\x00",
]
call_ids = st.sampled_from([*_known_ids, "srvtoolu_ä", "\ud800"])
names = st.sampled_from(
    ["Bash", "mcp__a__b", "3d", "a.b/c", "", "n" * 300, "a\n", "\ud800", "web_search", "code_execution"]
)
arguments = st.sampled_from(
    [
        *("{}", '{"a": 1}', "[1]", "null", '"text"', "1e999", "12345678901234567890", "9" * 5000, "[" * 60 + "]" * 60),
        *('{"a": "\\ud800"}', '{"\\ud800": {"a": 1, "a": 2}}', '{"type": "search"}', '{"type": "open_page", "url": 1}'),
    ]
)
broken_arguments = st.sampled_from(
    ["", "{", "*** Begin Patch", "NaN", "\ud800", "\x00", "[" * 100_000, "\ufeff{}", "{}{"]
)
wrong_shapes = st.sampled_from(["", "\ud800", "ä", 5, None, [], {}, ["x"], {"a": 1}, [{"a": "\ud800"}], True])
"""What a log may hold in the place of what a provider gave."""
proofs = st.fixed_dictionaries(
    {},
    optional={
        "signature": st.sampled_from(["", "c2ln"]),
        "data": st.just("ZGF0YQ=="),
        "encrypted_content": st.just("c2VhbGVk"),
        "id": st.just("rs_1"),
        "thought_signature": st.just("dGhvdWdodA=="),
        "reasoning_details": st.just([{"type": "reasoning.text", "text": "hm"}]),
        "reasoning_field": st.just("reasoning_content"),
    },
)
opaque = proofs | st.dictionaries(
    st.sampled_from(
        ["signature", "data", "itemId", "encrypted_content", "thoughtSignature", "reasoning_details", "phase"]
    ),
    wrong_shapes,
    max_size=3,
)
providers = st.none() | st.builds(
    ProviderData,
    name=st.sampled_from(["anthropic", "openai", "google", "openrouter", "elsewhere"]),
    model=models,
    opaque=opaque,
)
_citations = st.builds(
    Citation,
    url=st.sampled_from([None, "https://e", "https://\ud800"]),
    title=st.none() | words,
    metadata=st.sampled_from([{}, {"encrypted_index": "aQ=="}, {"encrypted_index": 5}]),
)
texts = st.builds(
    TextPart,
    text=words,
    provider=providers,
    citations=st.lists(_citations, max_size=2).map(tuple[Citation, ...]),
    metadata=st.sampled_from([{}, {"phase": "commentary"}, {"codex": {"phase": "\ud800"}}]),
)
_kinds = [
    "image/png",
    "image/*",
    "image/svg+xml",
    "application/pdf",
    "text/csv",
    "text/plain",
    "video/mp4",
    "audio/wav",
    "",
]
_addresses = ["https://e/a.png", "https://\ud800", "data:image/png;base64,AAAA", "data:,x", "file:///x", "gs://b/o", ""]
_names = st.none() | words
_nowhere = BlobRef(sha256="0" * 64, size=9)
files = (
    st.builds(FilePart, media_type=st.sampled_from(_kinds), data=st.sampled_from([PNG, b"", b"%PDF"]), filename=_names)
    | st.builds(FilePart, media_type=st.sampled_from(_kinds), url=st.sampled_from(_addresses), filename=_names)
    | st.builds(FilePart, media_type=st.sampled_from(_kinds), blob=st.just(_nowhere))
)
odd_parts = st.sampled_from(
    [
        DataPart(name="n", data=to_json({"a": 1})),
        UnknownPart(kind="k", data=to_json([1])),
        SourceUrlPart(source_id="s", url="https://e"),
        SourceUrlPart(
            source_id="s",
            url="https://\ud800",
            provider=ProviderData(name="anthropic", opaque={"encrypted_content": "e", "further": 1}),
        ),
        SourceDocumentPart(source_id="s", media_type="a/b", title="t"),
        DataPart(name="tool_reference", data=to_json({"type": "tool_reference", "tool_name": "a", "further": 1})),
        DataPart(name="tool_reference", data=to_json([])),
        DataPart(name="web_search_tool_result", data=to_json([])),
        DataPart(name="web_search_tool_result", data=to_json(None)),
    ]
)
reasoning = st.builds(
    ReasoningPart, text=words, provider=providers, redacted=st.booleans(), blob=st.none() | st.just(_nowhere)
)
contents = st.lists(texts | files | odd_parts | reasoning, max_size=2).map(tuple[Part, ...])
results = st.builds(
    ToolResult,
    id=st.sampled_from(["r1", "r2", "r3"]),
    status=st.sampled_from(["success", "error", "aborted", "denied"]),
    content=contents,
    error_text=st.none() | words,
    preliminary=st.booleans(),
)


@st.composite
def calls(draw: st.DrawFn) -> ToolCallPart:
    given: dict[str, Any] = (
        {"input": msgspec.Raw(draw(arguments).encode())}
        if draw(st.booleans())
        else {"input_text": draw(broken_arguments)}
    )
    return ToolCallPart(
        id=draw(st.none() | st.sampled_from(["p1", "p2"])),
        tool_call_id=draw(call_ids),
        tool_name=draw(names),
        provider=draw(providers),
        provider_executed=draw(st.integers(0, 5)) == 0,
        parent_tool_call_id=draw(st.sampled_from([None, None, None, "c1"])),
        results=tuple(draw(st.lists(results, max_size=3))),
        **given,
    )


answers = st.lists(texts | reasoning | calls() | files | odd_parts, max_size=5).map(tuple[Part, ...])

_said = st.builds(
    Message,
    id=st.uuids().map(str),
    role=st.just("assistant"),
    parts=answers,
    model=models,
    origin=st.sampled_from([None, None, None, Origin.HARNESS]),
    stop_reason=st.sampled_from([None, "stop", "aborted", "error", "pause"]),
    error=st.sampled_from([None, None, None, MessageError(text="a"), MessageError(text="")]),
)
_asked = st.builds(
    Message,
    id=st.uuids().map(str),
    role=st.just("user"),
    parts=contents | st.lists(texts | calls(), max_size=2).map(tuple[Part, ...]),
)
_injected = st.builds(
    Message,
    id=st.uuids().map(str),
    role=st.sampled_from(["developer", "developer", "system"]),
    parts=contents,
    origin=st.none() | st.sampled_from(Origin),
    metadata=st.sampled_from([{}, {"attachment_position": "prepend"}]),
)

histories = st.lists(_said | _asked | _injected, max_size=8)
"""Messages in any order, with everything that a message may hold."""
