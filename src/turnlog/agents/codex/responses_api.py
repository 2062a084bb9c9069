"""What a rollout has of OpenAI's Responses API: content -> parts, token counts -> usage.

Content of an unknown type keeps its exact JSON.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence
from mimetypes import guess_type
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Raw

from turnlog.agents.codex import NAME
from turnlog.agents.codex.records import Annotation, CodexContent, CodexUsage, Item, TokenInfo
from turnlog.model import (
    Citation,
    DataPart,
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    UnknownPart,
    Usage,
)

PROVIDER = "openai"

TEXT_TYPES = frozenset({"input_text", "output_text", "text", "Text", "summary_text", "reasoning_text", "refusal"})
IMAGE_TYPES = frozenset({"input_image", "image"})
DATA_TYPES = frozenset({"input_audio", "input_file", "encrypted_content"})
"""Known content without a part type of its own: a `DataPart` holds its JSON."""

IMAGE_MARKS = ("<image name=", "</image>", "<image>")
"""How the texts begin that Codex puts before and after an image of a prompt."""

RawContent = Callable[[], Raw]
"""Returns the exact JSON of a content. It is called only where the JSON is kept, because finding it costs a decode."""


def parts_of(content: list[CodexContent] | str | None, message_id: str, raw: Callable[[int], Raw]) -> tuple[Part, ...]:
    """The parts of a message; their ids are the message's with a number."""
    if isinstance(content, str):
        return (TextPart(id=f"{message_id}.0", text=content),)
    if not content:
        return ()
    parts = [part_of(piece, f"{message_id}.{index}", lambda at=index: raw(at)) for index, piece in enumerate(content)]
    has_image = any(piece.type in IMAGE_TYPES for piece in content)
    return tuple([_marked(part) for part in parts] if has_image else parts)


def _marked(part: Part) -> Part:
    """The part, marked as synthetic when it is a text that Codex put around an image."""
    if isinstance(part, TextPart) and part.text.startswith(IMAGE_MARKS):
        return msgspec.structs.replace(part, metadata={NAME: {"synthetic": True}})
    return part


def part_of(piece: CodexContent, part_id: str | None, raw: RawContent) -> Part:
    """The part of a content in any message or output."""
    kind = piece.type
    if kind in TEXT_TYPES and piece.text is not None:
        return text_part(piece, part_id)
    if kind in IMAGE_TYPES:
        return _image_part(piece, part_id) or DataPart(id=part_id, name=kind, data=raw())
    if kind in DATA_TYPES:
        return DataPart(id=part_id, name=kind, data=raw())
    return UnknownPart(id=part_id, kind=kind, data=raw())


def text_part(piece: CodexContent, part_id: str | None) -> TextPart:
    """The part of a text, with its citations."""
    return TextPart(id=part_id, text=piece.text or "", citations=citations_of([piece]))


def citations_of(content: list[CodexContent] | str | None) -> tuple[Citation, ...]:
    """The citations on the texts of a content."""
    if not isinstance(content, list):
        return ()
    return tuple([_citation(annotation) for piece in content if piece.annotations for annotation in piece.annotations])


def reasoning_part(item: Item, part_id: str, model: str | None) -> ReasoningPart:
    """The part of a `reasoning` item: its full text where the log has it, else its summary.

    `provider` has the encrypted original, which the API accepts when it is sent back.
    """
    opaque: dict[str, Any] = {}
    if item.id is not None:
        opaque["id"] = item.id
    if item.encrypted_content is not None:
        opaque["encrypted_content"] = item.encrypted_content
    summary = join_texts(item.summary)
    full = join_texts(item.content if isinstance(item.content, list) else None)
    if full and summary:
        opaque["summary"] = summary
    return ReasoningPart(
        id=part_id,
        text=full or summary,
        redacted=not full and not summary and item.encrypted_content is not None,
        provider=ProviderData(name=PROVIDER, model=model, opaque=opaque) if opaque else None,
    )


def join_texts(pieces: Sequence[CodexContent] | None) -> str:
    """The texts of a summary or of reasoning, as paragraphs."""
    if not pieces:
        return ""
    if len(pieces) == 1:
        return pieces[0].text or ""
    return "\n\n".join([piece.text for piece in pieces if piece.text])


def text_of(content: list[CodexContent] | str | None) -> str:
    """The text of a content, joined by newlines."""
    if isinstance(content, str):
        return content
    if not content:
        return ""
    if len(content) == 1:
        return content[0].text or ""
    return "\n".join([piece.text for piece in content if piece.text is not None])


def file_of(url: str, part_id: str | None = None, filename: str | None = None) -> FilePart | None:
    """The file of a URL: with its bytes when it is a data URL; None if that cannot be decoded."""
    if not url.startswith("data:"):
        return FilePart(id=part_id, media_type=guess_type(url)[0] or "image/*", url=url, filename=filename)
    head, comma, body = url[5:].partition(",")
    media_type, _, encoding = head.partition(";")
    data = _decoded(body, is_base64=encoding.endswith("base64")) if comma else None
    if data is None:
        return None
    return FilePart(id=part_id, media_type=media_type or "text/plain", data=data, filename=filename)


def from_base64(text: str) -> bytes | None:
    """The bytes of a Base64 text; None if it is cut off or not Base64."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def _decoded(body: str, *, is_base64: bool) -> bytes | None:
    return from_base64(body) if is_base64 else unquote_to_bytes(body)


def _image_part(piece: CodexContent, part_id: str | None) -> FilePart | None:
    return None if piece.image_url is None else file_of(piece.image_url, part_id, piece.filename)


def _citation(annotation: Annotation) -> Citation:
    return Citation(
        title=annotation.title,
        url=annotation.url,
        document=annotation.filename,
        start_index=annotation.start_index,
        end_index=annotation.end_index,
    )


def usage_of(wire: CodexUsage) -> Usage:
    """The usage of one response, in disjoint buckets: the API's input includes cached tokens, its output reasoning."""
    cached, written, reasoning = wire.cached_input_tokens, wire.cache_write_input_tokens, wire.reasoning_output_tokens
    whole, output = wire.input_tokens, wire.output_tokens
    return Usage(
        input=None if whole is None else max(whole - (cached or 0) - (written or 0), 0),
        cache_read=cached,
        cache_write=written,
        output=None if output is None else max(output - (reasoning or 0), 0),
        reasoning=reasoning,
    )


def counts_key(wire: CodexUsage) -> str:
    """A text that is equal for equal counts of any version: since 0.14x a count that was missing before is zero."""
    return " ".join([str(getattr(wire, name) or 0) for name in wire.__struct_fields__])


def usage_of_count(info: TokenInfo, before: CodexUsage | None) -> Usage | None:
    """The usage of the newest response, from a `token_count` whose total has changed.

    It is what the record has of the last response; without that, the increase of the total. None if there is neither:
    after a compaction the last total is an estimate of the context, and its counts are zero.
    """
    last, now = info.last_token_usage, info.total_token_usage
    if last is not None:
        return usage_of(last) if last.input_tokens or last.output_tokens else None
    if now is None:
        return None
    return usage_of(now if before is None else _difference(now, before))


def _difference(now: CodexUsage, before: CodexUsage) -> CodexUsage:
    """The tokens since the total `before`; all of `now` when the total began again."""
    if (now.total_tokens or 0) < (before.total_tokens or 0):
        return now
    return CodexUsage(
        input_tokens=_increase(now.input_tokens, before.input_tokens),
        cached_input_tokens=_increase(now.cached_input_tokens, before.cached_input_tokens),
        cache_write_input_tokens=_increase(now.cache_write_input_tokens, before.cache_write_input_tokens),
        output_tokens=_increase(now.output_tokens, before.output_tokens),
        reasoning_output_tokens=_increase(now.reasoning_output_tokens, before.reasoning_output_tokens),
    )


def _increase(now: int | None, before: int | None) -> int | None:
    return None if now is None else max(now - (before or 0), 0)
