"""Random chunk streams: mostly what servers send, often out of order, sometimes no valid chunk at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

from support.ai_sdk_values import any_json, any_object, damaged, flag, maybe, provider_metadata, text

Chunk: TypeAlias = dict[str, Any]
Maker: TypeAlias = Callable[[Random], Any]

INPUTS = (
    '{"path":"a.py","lines":[1,2.5e1,-3],"deep":{"x":[true,false,null]}}',
    '{"cmd":"echo \\"hi\\" \\u00e9\\ud83d\\ude00 \\\\n"}',
    '["a",["b"],{"c":{}}]',
    '"text"',
    "  [ 1 , 2 ]  ",
    "not json",
    '{"__proto__":{"a":1}}',
    "-12.5e+3",
    '{"a\\"b":1,"日":"本"}',
)


def one_of(*options: Any) -> Maker:
    return lambda random: random.choice(options)


def message_metadata(random: Random) -> Any:
    return any_object(random, 3) if random.random() < 0.8 else any_json(random, 2)


def citation(random: Random) -> Chunk:
    url = {"sourceType": "url", "url": "https://a", **maybe(random, 0.4, {"title": text(random)})}
    document = {"sourceType": "document", "mediaType": "m/n", "title": "t", **maybe(random, 0.4, {"filename": "f"})}
    metadata = maybe(random, 0.3, {"providerMetadata": provider_metadata(random)})
    source = {"type": "source", "id": "s", **random.choice((url, document)), **metadata}
    extras = {"startIndex": random.choice((0, 3, 1.0, 2**53)), "endIndex": 7, "citedText": text(random), "zzz": 1}
    made = {"source": source, **maybe(random, 0.4, extras)}
    return damaged(random, made) if random.random() < 0.1 else made


def citations(random: Random) -> list[Chunk]:
    return [citation(random) for _ in range(random.randrange(3))]


def user_parts(random: Random) -> list[Chunk]:
    metadata = maybe(random, 0.3, {"providerMetadata": provider_metadata(random)})
    parts: list[Chunk] = [
        {"type": "text", "text": text(random), **metadata, **maybe(random, 0.2, {"state": 5})},
        {"type": "file", "mediaType": "m/n", "url": "data:,", **maybe(random, 0.3, {"providerReference": {"a": "b"}})},
    ]
    return random.sample(parts, random.randrange(3))


def finish_reason(random: Random) -> str:
    usual = ("stop", "length", "content-filter", "tool-calls", "error", "other")
    return random.choice(usual if random.random() < 0.8 else ("unknown", "interrupted"))


def any_dict(random: Random) -> Chunk:
    return any_object(random, 1)


_PART_ID = {"id": one_of("t1", "t2", "")}
_CALL_ID = {"toolCallId": one_of("c1", "c2", "c3")}
_CALL = {**_CALL_ID, "toolName": one_of("read", "a-b", "")}
_APPROVAL_ID = {"approvalId": one_of("p1", "p2")}
_DELTA = {**_PART_ID, "delta": text}
_FILE = {"url": one_of("data:,"), "mediaType": one_of("m/n")}
_JSON_PIECES = one_of('{"a":', "1", '"x', "}", "[", "tru", "", ",", "\\u00")

REQUIRED: dict[str, dict[str, Maker]] = {
    "start": {},
    "message-metadata": {"messageMetadata": message_metadata},
    "start-step": {},
    "finish-step": {},
    "reset-step": {},
    "text-start": _PART_ID,
    "text-delta": _DELTA,
    "text-end": _PART_ID,
    "reasoning-start": _PART_ID,
    "reasoning-delta": _DELTA,
    "reasoning-end": _PART_ID,
    "tool-input-start": _CALL,
    "tool-input-delta": {**_CALL_ID, "inputTextDelta": _JSON_PIECES},
    "tool-input-available": {**_CALL, "input": any_json},
    "tool-input-error": {**_CALL, "input": any_json, "errorText": text},
    "tool-approval-request": {**_APPROVAL_ID, **_CALL_ID},
    "tool-approval-response": {**_APPROVAL_ID, "approved": flag},
    "tool-output-available": {**_CALL_ID, "output": any_json},
    "tool-output-error": {**_CALL_ID, "errorText": text},
    "tool-output-denied": _CALL_ID,
    "source-url": {"sourceId": one_of("s"), "url": one_of("https://a")},
    "source-document": {"sourceId": one_of("s"), "mediaType": one_of("m/n"), "title": text},
    "file": _FILE,
    "reasoning-file": _FILE,
    "custom": {"kind": one_of("openai.compaction", "x")},
    "steering-message": {"id": one_of("u1"), "parts": user_parts},
    "data-a": {"data": any_json},
    "data-": {"data": any_json},
    "error": {"errorText": text},
    "abort": {},
    "finish": {},
}
"""Every type of chunk, with the fields that it must have."""

OPTIONAL: dict[str, Maker] = {
    "providerMetadata": provider_metadata,
    "messageId": one_of("m1", "m2", ""),
    "messageMetadata": message_metadata,
    "citations": citations,
    "providerExecuted": flag,
    "dynamic": flag,
    "title": text,
    "toolMetadata": any_dict,
    "inputEncoding": one_of("json", "text"),
    "signature": text,
    "approvalDescriptor": any_json,
    "inputSchemaInput": any_json,
    "reason": text,
    "isAutomatic": flag,
    "preliminary": flag,
    "filename": text,
    "id": one_of("d1", "d2", ""),
    "transient": flag,
    "finishReason": finish_reason,
    "unknown": any_json,
}
"""What some of them may have; on the others it is a key that nobody knows."""

_USUAL: dict[str, tuple[str, ...]] = {
    "start": ("messageId", "messageMetadata"),
    "text-end": ("providerMetadata", "citations"),
    "tool-input-start": ("providerExecuted", "dynamic", "title", "toolMetadata", "providerMetadata", "inputEncoding"),
    "tool-input-available": ("providerExecuted", "dynamic", "title", "toolMetadata", "providerMetadata"),
    "tool-input-error": ("providerExecuted", "dynamic", "title", "toolMetadata", "providerMetadata"),
    "tool-approval-request": ("signature", "approvalDescriptor", "inputSchemaInput", "reason", "isAutomatic"),
    "tool-approval-response": ("reason", "providerExecuted", "providerMetadata"),
    "tool-output-available": ("providerExecuted", "dynamic", "preliminary", "toolMetadata", "providerMetadata"),
    "tool-output-error": ("providerExecuted", "dynamic", "toolMetadata", "providerMetadata"),
    "source-url": ("title", "providerMetadata"),
    "source-document": ("filename", "providerMetadata"),
    "file": ("providerMetadata", "filename"),
    "data-a": ("id", "transient", "unknown"),
    "data-": ("id", "transient"),
    "abort": ("reason",),
    "finish": ("finishReason", "messageMetadata"),
}
_RARE = {"start": 1, "reset-step": 1, "error": 1, "abort": 1, "finish": 1, "steering-message": 1, "custom": 1}
_KINDS = tuple(kind for kind in REQUIRED for _ in range(_RARE.get(kind, 3)))
_LATER_KINDS = ("tool-approval", "tool-output-denied", "reasoning-file", "custom", "steering", "reset-step")
_NEEDS = {
    "text-delta": ("text-start", "id"),
    "text-end": ("text-start", "id"),
    "reasoning-delta": ("reasoning-start", "id"),
    "reasoning-end": ("reasoning-start", "id"),
    "tool-input-delta": ("tool-input-start", "toolCallId"),
    "tool-output-available": ("tool-input-available", "toolCallId"),
    "tool-output-error": ("tool-input-available", "toolCallId"),
    "tool-output-denied": ("tool-input-available", "toolCallId"),
    "tool-approval-request": ("tool-input-available", "toolCallId"),
    "tool-approval-response": ("tool-approval-request", "approvalId"),
}
"""What must have come before, with the same id."""

NOT_PLAIN = (
    "",
    "nonsense",
    "[]",
    "null",
    "5",
    '{"type":"data-x","data":NaN}',
    '{"type":"data-x","data":1e999}',
    '{"type":"start","messageId":"\\ud83d"}',
    '{"type":"data-x","data":{"__proto__":{}}}',
    '{"type":"start-step",}',
    '{"type":"data-x","data":{"constructor":{"prototype":1}}}',
    '{"type":"data-x","data":{"constructor":[1]}}',
    '{"type":"data-x","data":1,"data":{"\\u005f_proto__":1}}',
    '{"type":"text-start","id":"t1","id":"t2"}',
    '{"type":"start","$extra":{"a":1}}',
    '{"type":"data-x","data":1,"$extra":{"a":1}}',
    '{"type":"data-x","data":123456789012345678901234567890}',
    '{"type":"text-start","id":"t","providerMetadata":{"a":{"b":1e999}}}',
)
"""JSON that Python's own writer would not make."""


def any_chunk(random: Random, kind: str = "") -> Chunk:
    kind = kind or random.choice(_KINDS)
    chunk = {"type": kind, **{name: make(random) for name, make in REQUIRED[kind].items()}}
    for name in _USUAL.get(kind, ("providerMetadata",)):
        if random.random() < 0.25:
            chunk[name] = OPTIONAL[name](random)
    if random.random() < 0.05:
        name = random.choice(list(OPTIONAL))
        chunk.setdefault(name, OPTIONAL[name](random))
    return chunk


def stream(random: Random) -> list[str]:
    """A stream, each chunk as JSON. Most of them are tidy before they are (perhaps) disturbed."""
    chunks = random.choice((_tidy, _wild))(random)
    if random.random() < 0.6:
        # Kinds that one version does not know would end nearly every stream there.
        chunks = [chunk for chunk in chunks if not str(chunk["type"]).startswith(_LATER_KINDS)]
    if random.random() < 0.25:
        chunks = _disturbed(random, chunks)
    texts = [json.dumps(chunk) for chunk in chunks]
    if random.random() < 0.05:
        texts.insert(random.randrange(len(texts) + 1), random.choice(NOT_PLAIN))
    return texts


def _wild(random: Random) -> list[Chunk]:
    """Any chunks, whose ids have nearly always been sent before."""
    chunks: list[Chunk] = []
    for _ in range(random.randrange(1, 25)):
        chunk = any_chunk(random)
        before, key = _NEEDS.get(chunk["type"], ("", ""))
        told = [earlier[key] for earlier in chunks if earlier["type"] == before]
        if before and random.random() < 0.97:
            chunk = {**chunk, key: random.choice(told)} if told else any_chunk(random, before)
        chunks.append(chunk)
    return chunks


def _disturbed(random: Random, chunks: list[Chunk]) -> list[Chunk]:
    chunks = list(chunks)
    for _ in range(random.randrange(1, 3)):
        position = random.randrange(len(chunks) + 1)
        kind = random.randrange(4)
        if kind == 0 or not chunks:
            chunks.insert(position, any_chunk(random))
        elif kind == 1:
            del chunks[position % len(chunks)]
        elif kind == 2:
            chunks[position % len(chunks)] = damaged(random, chunks[position % len(chunks)])
        else:
            chunks.insert(position, random.choice(chunks))
    return chunks


def _tidy(random: Random) -> list[Chunk]:
    """What a server sends: steps of whole parts."""
    chunks = [any_chunk(random, "start")]
    for step in range(random.randrange(1, 4)):
        chunks.append({"type": "start-step"})
        for part in range(random.randrange(4)):
            chunks.extend(random.choice((_tidy_text, _tidy_call, _tidy_other))(random, f"{step}.{part}"))
        chunks.append({"type": "finish-step"})
    return [*chunks, any_chunk(random, "finish")]


def _tidy_text(random: Random, name: str) -> list[Chunk]:
    kind = random.choice(("text", "reasoning"))
    deltas = [any_chunk(random, f"{kind}-delta") for _ in range(random.randrange(5))]
    chunks = [any_chunk(random, f"{kind}-start"), *deltas, any_chunk(random, f"{kind}-end")]
    return [{**chunk, "id": name} for chunk in chunks]


def _tidy_other(random: Random, _name: str) -> list[Chunk]:
    return [any_chunk(random, random.choice(("data-a", "file", "source-url", "source-document", "message-metadata")))]


def _tidy_call(random: Random, name: str) -> list[Chunk]:
    chunks: list[Chunk] = []
    if random.random() < 0.7:
        pieces = [{"type": "tool-input-delta", "inputTextDelta": piece} for piece in _pieces(random)]
        chunks += [any_chunk(random, "tool-input-start"), *pieces]
    chunks.append(any_chunk(random, "tool-input-available"))
    if random.random() < 0.3:
        chunks.append({**any_chunk(random, "tool-approval-request"), "approvalId": f"p{name}"})
    chunks += [any_chunk(random, "tool-output-available") for _ in range(random.randrange(2))]
    outcome = random.choice(("tool-output-available", "tool-output-error", "tool-output-denied", ""))
    chunks += [any_chunk(random, outcome)] if outcome else []
    tool = random.choice(("read", "a-b"))
    dynamic = random.choice(({}, {"dynamic": True}))
    named = {"toolCallId": name, **dynamic}
    return [{**chunk, **named, **({"toolName": tool} if "toolName" in chunk else {})} for chunk in chunks]


def _pieces(random: Random) -> list[str]:
    """An input, torn anywhere, and perhaps cut off."""
    whole = random.choice(INPUTS)
    if random.random() < 0.3:
        whole = whole[: random.randrange(len(whole) + 1)]
    pieces: list[str] = []
    while whole:
        size = random.randrange(1, 12)
        pieces.append(whole[:size])
        whole = whole[size:]
    return pieces
