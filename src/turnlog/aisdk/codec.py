"""JSON <-> the types: parsing strictly for a version or leniently for whatever came, and writing exact JSON.

Parsing keeps everything: unknown keys in `extra`, and leniently also parts and chunks that no shape fits. Written
JSON holds each required null and no optional one, no NaN (null, as JavaScript writes it), lone surrogates as escapes,
and, in chunks, no key that AI SDK's parser refuses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET

from turnlog.aisdk.base import JSON_PROPERTY, UIValue
from turnlog.aisdk.building import build_chunk, build_message, has_foreign_keys, to_plain
from turnlog.aisdk.checks import at
from turnlog.aisdk.chunk_shapes import chunk_check, known_chunks, known_finish_reasons
from turnlog.aisdk.chunks import FinishChunk, SteeringMessageChunk, TaggedChunk, TextEndChunk, UIMessageChunk
from turnlog.aisdk.json_text import holds_unsafe_key, may_hold_unsafe_key, parse_json
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.shapes import message_check
from turnlog.aisdk.versions import SdkVersion, Version, sdk_version, supports
from turnlog.errors import ShapeError

JsonInput: TypeAlias = bytes | str | dict[str, Any]
"""JSON text, or what a JSON reader made of it."""

_encode_exactly = msgspec.json.Encoder().encode
_chunk_decoder: msgspec.json.Decoder[TaggedChunk] = msgspec.json.Decoder(TaggedChunk)
_EXTRA_KEY = JSON_PROPERTY.encode()


def parse_ui_message(data: JsonInput, *, version: Version = 7, strict: bool = True) -> UIMessage:
    """A message from its JSON (R-S1, R-S2, R-S13).

    Strict means: what `validateUIMessages` of this version accepts; unknown keys are kept nevertheless. Lenient means
    any version: parts of unknown type or broken shape become UnknownUIParts.

    Raises:
        ShapeError: It is not valid; leniently, its id, role or list of parts are not what they must be.
    """
    return _message_from(_plain_input(data, unsafe_keys=True), sdk_version(version), strict=strict)


def parse_ui_messages(
    data: bytes | str | Sequence[dict[str, Any]], *, version: Version = 7, strict: bool = True
) -> list[UIMessage]:
    """The messages of a JSON array, as `parse_ui_message` does one."""
    values = _plain_input(data, unsafe_keys=True)
    if not isinstance(values, list | tuple):
        raise ShapeError("expected a list of messages")
    release = sdk_version(version)

    def parse(value: Any) -> UIMessage:
        return _message_from(value, release, strict=strict)

    return [at(position, parse, value) for position, value in enumerate(cast("list[Any]", values))]


def parse_chunk(data: JsonInput, *, version: Version = 7, strict: bool = True) -> UIMessageChunk:
    """A chunk from its JSON.

    Strict means: what the client of this release accepts. Lenient means any version: what no shape fits becomes an
    UnknownChunk.

    Raises:
        ShapeError: It is no JSON (as AI SDK reads it), or, strictly, the client would refuse it.
    """
    release = sdk_version(version)
    chunk = _quick_chunk(data, release) if supports(release, "unknown-keys") else None
    if chunk is not None:
        return chunk
    value = _plain_input(data)
    if strict:
        chunk_check(release)(value)
    return build_chunk(value)


def encode(value: UIValue | Sequence[UIValue]) -> bytes:
    """Exact JSON of a message, part or chunk, or of a list of them; raise TypeError for what is none."""
    if not isinstance(value, UIValue):
        if not isinstance(value, list | tuple):
            raise TypeError(f"expected messages, parts or chunks, not {type(value).__name__}: parse JSON first")
        return b"[" + b",".join([encode(item) for item in value]) + b"]"
    if not has_foreign_keys(value):
        try:
            return _encode_exactly(value)
        except UnicodeEncodeError:
            pass
    return _encode_plain(to_plain(value))


def encode_chunk(chunk: UIMessageChunk) -> bytes:
    """Exact JSON of a chunk; raise ShapeError where a key inside would make AI SDK's parser end the stream.

    `json_text.without_unsafe_keys` takes such keys out of a value.
    """
    data = encode(chunk)
    if may_hold_unsafe_key(data) and holds_unsafe_key(json.loads(data)):
        raise ShapeError(f"a {chunk.type} chunk holds a key that reaches JavaScript's prototypes")
    return data


def _message_from(value: Any, release: SdkVersion, *, strict: bool) -> UIMessage:
    if strict:
        message_check(release.major)(value)
    return build_message(value)


def _plain_input(data: Any, *, unsafe_keys: bool = False) -> Any:
    if not isinstance(data, bytes | str):
        return data
    try:
        return parse_json(data, unsafe_keys=unsafe_keys)
    except ValueError as error:
        raise ShapeError(f"not JSON: {error}") from error


def _quick_chunk(data: JsonInput, release: SdkVersion) -> UIMessageChunk | None:
    """The chunk if it is of the common shape, in one go; None where it takes a closer look to tell."""
    if isinstance(data, dict):
        return None
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if may_hold_unsafe_key(data) or _EXTRA_KEY in data:
        return None
    try:
        chunk = _chunk_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return chunk if _is_plainly_valid(chunk, release) else None


def _is_plainly_valid(chunk: TaggedChunk, release: SdkVersion) -> bool:
    """Whether the client of this release surely takes a chunk that has the shape of the newest."""
    if chunk.type not in known_chunks(release):
        return False
    if isinstance(chunk, FinishChunk):
        return chunk.finish_reason is UNSET or chunk.finish_reason in known_finish_reasons(release)
    if isinstance(chunk, TextEndChunk):
        return chunk.citations is UNSET
    return not isinstance(chunk, SteeringMessageChunk)


def _encode_plain(plain: Any) -> bytes:
    try:
        return _encode_exactly(plain)
    except UnicodeEncodeError:
        return json.dumps(_finite(plain), separators=(",", ":"), allow_nan=False).encode("ascii")


def _finite(plain: Any) -> Any:
    """The value with null for every number that is none."""
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    if isinstance(plain, dict):
        return {key: _finite(item) for key, item in cast("dict[str, Any]", plain).items()}
    return [_finite(item) for item in cast("list[Any]", plain)] if isinstance(plain, list) else plain
