"""Random histories as damage and interrupts leave them: missing, double and empty results, odd orders, odd names."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from provider_messages import MODEL, PNG
from turnlog.model import (
    Citation,
    DataPart,
    FilePart,
    Message,
    MessageError,
    Origin,
    Part,
    ProviderData,
    ReasoningPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.codec import to_json

words = st.sampled_from(["", " ", "\n", "a", "b ", "ü\ud800", "two\nlines", "</thinking>", "x" * 200])
models = st.sampled_from([MODEL, MODEL, "another-model", None])
call_ids = st.sampled_from(["c1", "c2", "c3", "c4", "functions.bash:0", "", "toolu_" + "x" * 80, "ä"])
names = st.sampled_from(["Bash", "mcp__a__b", "3d", "a.b/c", "", "n" * 300])
arguments = st.sampled_from(["{}", '{"a": 1}', "[1]", "null", '"text"', "1e999", "12345678901234567890"])
broken_arguments = st.sampled_from(["", "{", "*** Begin Patch", "NaN"])
opaque = st.fixed_dictionaries(
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
providers = st.none() | st.builds(
    ProviderData,
    name=st.sampled_from(["anthropic", "openai", "google", "openrouter", "elsewhere"]),
    model=models,
    opaque=opaque,
)
texts = st.builds(
    TextPart, text=words, provider=providers, citations=st.just(()) | st.just((Citation(url="https://e"),))
)
files = st.builds(
    FilePart,
    media_type=st.sampled_from(["image/png", "image/svg+xml", "application/pdf", "text/csv", "video/mp4"]),
    data=st.sampled_from([PNG, b"", b"%PDF"]),
)
odd_parts = st.sampled_from(
    [
        DataPart(name="n", data=to_json({"a": 1})),
        UnknownPart(kind="k", data=to_json([1])),
        SourceUrlPart(source_id="s", url="https://e"),
    ]
)
contents = st.lists(texts | files | odd_parts, max_size=2).map(tuple[Part, ...])
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
        {"input": to_json(draw(st.just(None))).__class__(draw(arguments).encode())}
        if draw(st.booleans())
        else {"input_text": draw(broken_arguments)}
    )
    return ToolCallPart(
        id=draw(st.none() | st.sampled_from(["p1", "p2"])),
        tool_call_id=draw(call_ids),
        tool_name=draw(names),
        provider=draw(providers),
        provider_executed=draw(st.integers(0, 5)) == 0,
        results=tuple(draw(st.lists(results, max_size=3))),
        **given,
    )


reasoning = st.builds(ReasoningPart, text=words, provider=providers)
answers = st.lists(texts | reasoning | calls() | files | odd_parts, max_size=5).map(tuple[Part, ...])

_said = st.builds(
    Message,
    id=st.uuids().map(str),
    role=st.just("assistant"),
    parts=answers,
    model=models,
    origin=st.sampled_from([None, None, None, Origin.HARNESS]),
    error=st.sampled_from([None, None, None, MessageError(text="a")]),
)
_asked = st.builds(Message, id=st.uuids().map(str), role=st.just("user"), parts=contents)
_injected = st.builds(
    Message,
    id=st.uuids().map(str),
    role=st.sampled_from(["developer", "developer", "system"]),
    parts=contents,
    origin=st.sampled_from([None, Origin.HARNESS, Origin.NOTIFICATION, Origin.COMPACTION]),
)

histories = st.lists(_said | _asked | _injected, max_size=8)
"""Messages in any order, with everything that a message may hold."""
