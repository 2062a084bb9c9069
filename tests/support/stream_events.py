"""Random streams of events for property tests: likely ones, and broken ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET, Raw

from turnlog.model import stream as events
from turnlog.model.base import ProviderData
from turnlog.model.codec import to_json
from turnlog.model.parts import FilePart, SourceDocumentPart, SourceUrlPart, TextPart, ToolResult
from turnlog.model.usage import Usage

IDS = st.sampled_from(["a", "b", "", "a~2", "é"])
CALLS = st.sampled_from(["c1", "c2", "c3"])
NAMES = st.sampled_from(["Bash", "read-file", "a.b", ""])
APPROVALS = st.sampled_from(["p1", "p2"])
TEXTS = st.sampled_from(["", "x", "Hello ", '{"a":', "1}", "\n\n", "data: [DONE]\n\n", "\u2028", "𝄞", "\ud83d", "\x00"])
REASONS = st.none() | TEXTS
EXACT = st.sampled_from(
    [
        Raw(b'{"command":"ls"}'),
        Raw(b"null"),
        Raw(b"[1,\n2]"),
        Raw(b'"text"'),
        Raw(b'{"__proto__":{"a":1},"b":{"constructor":{"prototype":1}}}'),
        Raw(b'{"\\u005f_proto__":1}'),
        Raw(b"12345678901234567890"),
        Raw(b'{"a":"\\ud83d"}'),
        Raw(b"{broken"),
        Raw(b"NaN"),
        Raw(b""),
    ]
)
OPAQUE = st.sampled_from(
    [
        {},
        {"signature": "s"},
        {"a": None},
        {"__proto__": 1, "b": float("nan")},
        {"deep": {"constructor": {"prototype": 1}}},
    ]
)
PROVIDERS = st.none() | st.builds(
    ProviderData, name=st.sampled_from(["anthropic", "openai", "__proto__"]), opaque=OPAQUE
)
CONTENT = st.sampled_from(
    [
        (),
        (TextPart(text="done"),),
        (TextPart(text='{"a":1}'),),
        (TextPart(text="a"), FilePart(media_type="image/png", data=b"\x89PNG")),
        (TextPart(text="\ud83d"),),
    ]
)
RESULTS = st.builds(
    ToolResult,
    id=st.just("r"),
    status=st.sampled_from(["success", "error", "aborted", "denied"]),
    content=CONTENT,
    structured=st.just(UNSET) | EXACT,
    error_text=REASONS,
    preliminary=st.booleans(),
)
FILES = st.sampled_from(
    [
        FilePart(media_type="image/png", data=b"\x89PNG"),
        FilePart(media_type="image/png", url="https://example.com/a.png", filename="a.png"),
        FilePart(media_type="image/png", url="/a.png"),
        FilePart(
            media_type="text/plain", url="data:text/plain,x", provider=ProviderData(name="openai", opaque={"id": "1"})
        ),
    ]
)
SOURCES = st.sampled_from(
    [
        SourceUrlPart(source_id="s", url="https://example.com", title="T"),
        SourceDocumentPart(source_id="d", media_type="application/pdf", title="", filename="d.pdf"),
    ]
)
USAGES = st.none() | st.just(Usage(input=1, output=2))
METADATA = st.sampled_from([{}, {"a": 1}, {"a": {"b": None}}, {"__proto__": 1}, {"n": float("inf")}])
STOPS = st.none() | st.sampled_from(["stop", "length", "tool_use", "pause", "error", "refusal", "aborted"])

INSIDE: st.SearchStrategy[Any] = st.one_of(
    st.builds(events.StepStart, model=st.none() | st.just("m")),
    st.builds(events.StepFinish, usage=USAGES, stop_reason=STOPS),
    st.builds(events.TextStart, id=IDS, provider=PROVIDERS),
    st.builds(events.TextDelta, id=IDS, delta=TEXTS),
    st.builds(events.TextEnd, id=IDS, provider=PROVIDERS),
    st.builds(events.ReasoningStart, id=IDS, provider=PROVIDERS),
    st.builds(events.ReasoningDelta, id=IDS, delta=TEXTS),
    st.builds(events.ReasoningEnd, id=IDS, provider=PROVIDERS),
    st.builds(events.ToolInputStart, tool_call_id=CALLS, tool_name=NAMES, provider_executed=st.booleans()),
    st.builds(events.ToolInputDelta, tool_call_id=CALLS, delta=TEXTS),
    st.builds(
        events.ToolInputAvailable,
        tool_call_id=CALLS,
        tool_name=NAMES,
        input=st.just(UNSET) | EXACT,
        input_text=REASONS,
        provider_executed=st.booleans(),
        provider=PROVIDERS,
    ),
    st.builds(events.ToolOutput, tool_call_id=CALLS, result=RESULTS),
    st.builds(events.ApprovalRequest, approval_id=APPROVALS, tool_call_id=CALLS, reason=REASONS),
    st.builds(events.ApprovalResponse, approval_id=APPROVALS, approved=st.booleans(), reason=REASONS),
    st.builds(events.FileEvent, file=FILES),
    st.builds(events.SourceEvent, source=SOURCES),
    st.builds(events.DataEvent, name=NAMES, data=EXACT, id=st.none() | IDS, transient=st.booleans()),
)
OUTSIDE: st.SearchStrategy[Any] = st.one_of(
    st.builds(events.RunStart, message_id=st.none() | IDS, metadata=METADATA),
    st.builds(events.StreamError, error_text=TEXTS),
    st.builds(events.RunFinish, stop_reason=STOPS, usage=USAGES, metadata=METADATA),
    st.builds(events.Abort, reason=REASONS),
    st.builds(events.Pause, reason=st.sampled_from(["approval", "input", "other"])),
)
BROKEN: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "text",
        {"type": "text-delta"},
        events.TextDelta(id="a", delta=None),  # pyright: ignore[reportArgumentType]  # wrong on purpose
        events.TextStart(id=5),  # pyright: ignore[reportArgumentType]  # wrong on purpose
        events.RunStart(metadata=[]),  # pyright: ignore[reportArgumentType]  # wrong on purpose
        events.RunFinish(stop_reason="no such"),  # pyright: ignore[reportArgumentType]  # wrong on purpose
        events.ToolOutput(tool_call_id="c1", result=None),  # pyright: ignore[reportArgumentType]  # wrong on purpose
        # Wrong on purpose, like those above.
        events.ToolOutput(tool_call_id="c1", result=ToolResult(id="r", status="no such")),  # pyright: ignore[reportArgumentType]
        # And this one.
        events.ToolOutput(tool_call_id="c1", result=ToolResult(id="r", content=None)),  # pyright: ignore[reportArgumentType]
        events.DataEvent(name=5, data=to_json({"a": 1})),  # pyright: ignore[reportArgumentType]  # wrong on purpose
    ]
)
STREAMS: st.SearchStrategy[list[tuple[Any, str]]] = st.tuples(
    st.lists(
        st.tuples(st.one_of(INSIDE, INSIDE, INSIDE, INSIDE, BROKEN), st.sampled_from(["", "", "node"])), max_size=40
    ),
    st.lists(st.tuples(st.one_of(OUTSIDE, INSIDE), st.just("")), max_size=6),
).map(lambda halves: halves[0] + halves[1])
"""Events with their lanes: something happens, then perhaps it ends, then perhaps it goes on nevertheless."""
