"""How each export format is written: the table, and what a request needs of the files on this machine."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from turnlog.errors import ConversionError
from turnlog.exports import ExportFormat
from turnlog.exports.source import ExportSource, is_shown
from turnlog.model import FilePart, Message
from turnlog.model.codec import encode

JSON = "application/json"


class Output(NamedTuple):
    """A document in pieces, and what it does not carry or had to change: kind and place of each."""

    pieces: Iterable[bytes]
    losses: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    files: Mapping[str, bytes] = MappingProxyType({})
    """What belongs beside the document, by its relative path."""


class Format(NamedTuple):
    """A way to write a session."""

    extension: str
    media_type: str
    write: Callable[[ExportSource, str | None], Output]
    """Takes the session and the model that a request asks."""


def _markdown(source: ExportSource, _model: str | None) -> Output:
    from turnlog.formats.markdown import to_markdown

    blocks = to_markdown(source.session, source.history(), names=source.names(), read_spill=source.read_spill)
    return Output([block.encode() for block in blocks])


def _html(source: ExportSource, _model: str | None) -> Output:
    from turnlog.formats.html import HtmlConversation, to_html

    shown = [HtmlConversation(each.session, each.with_results(), each.read_spill) for each in source.with_subagents()]
    return Output(to_html(shown))


def _json(source: ExportSource, _model: str | None) -> Output:
    from turnlog.formats.json import to_json

    events = source.history()
    return Output(list(to_json(source.session, events, source.outputs(events))))


def _json_lines(source: ExportSource, _model: str | None) -> Output:
    from turnlog.formats.json import to_json_lines

    events = source.history()
    hidden = [("output", f"the whole of {name} is not among the lines") for name in source.outputs(events)]
    return Output(to_json_lines(events), tuple(grouped(hidden)))


def _ui_messages(source: ExportSource, _model: str | None) -> Output:
    from turnlog.aisdk.convert import to_ui_json

    bodies = [encode(message) for message, place in source.placed() if is_shown(place)]
    made = to_ui_json(bodies, children=source.children())
    return Output([made.to_json(), b"\n"], tuple(grouped((loss.feature, loss.reason) for loss in made.losses)))


def _cassette(source: ExportSource, _model: str | None) -> Output:
    from turnlog.cassette.recording import RecordedSession, record
    from turnlog.cassette.tape import to_json

    made = record([RecordedSession(each.session, each.placed(), each.events()) for each in source.with_subagents()])
    return Output([to_json(made.cassette)], tuple(grouped(made.losses)))


def _atif(source: ExportSource, _model: str | None) -> Output:
    from turnlog.formats.atif import AtifConversation, to_atif

    made = to_atif(
        [
            AtifConversation(each.session, each.priced(), each.events(), each.read_spill)
            for each in source.with_subagents()
        ]
    )
    return Output([made.to_json(), b"\n"], tuple(grouped(made.losses)), files=made.files)


def _otel(source: ExportSource, _model: str | None) -> Output:
    import turnlog
    from turnlog.formats.otel import OtelConversation, omitted, to_otel

    conversations = [OtelConversation(each.session, each.priced()) for each in source.with_subagents()]
    made = to_otel(conversations, source.root_id(), version=turnlog.__version__, content=source.content)
    return Output([made, b"\n"], tuple(grouped(omitted(conversations, content=source.content))))


def _request(name: str) -> Callable[[ExportSource, str | None], Output]:
    def write(source: ExportSource, model: str | None) -> Output:
        from turnlog.providers import provider
        from turnlog.providers.base import RequestOptions
        from turnlog.providers.context import PlacedHistory, select_context

        placed = source.placed()
        history = PlacedHistory([message for message, _ in placed], [place for _, place in placed], source.events())
        context = select_context(history)
        options = RequestOptions(model=model or _last_model(context.messages), load_file=load_local_file)
        made = provider(name).to_request(context.messages, options)
        repairs = (*context.repairs, *made.repairs)
        return Output(
            [msgspec.json.encode(made.body, enc_hook=_base64), b"\n"],
            tuple(grouped((loss.kind, f"message {loss.message_id}: {loss.detail}") for loss in made.losses)),
            tuple(grouped((repair.kind, f"message {repair.message_id}: {repair.detail}") for repair in repairs)),
        )

    return write


def _base64(value: Any) -> Any:
    """Bytes of a body, as JSON has them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a body holds a {type(value).__name__}")


def _last_model(messages: Sequence[Message]) -> str:
    found = next((message.model for message in reversed(messages) if message.model), None)
    if found is None:
        raise ConversionError("no message names a model: give the one that the request is for")
    return found


def grouped(texts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One line for each kind of these kinds and places: how often, and the first place."""
    listed = list(texts)
    counts = Counter(kind for kind, _ in listed)
    firsts: dict[str, str] = {}
    for kind, reason in listed:
        firsts.setdefault(kind, reason)
    for kind, reason in firsts.items():
        yield f"{kind}: {reason}" + (f" (and {counts[kind] - 1} more)" if counts[kind] > 1 else "")


FORMATS: dict[ExportFormat, Format] = {
    ExportFormat.MARKDOWN: Format("md", "text/markdown; charset=utf-8", _markdown),
    ExportFormat.HTML: Format("html", "text/html; charset=utf-8", _html),
    ExportFormat.JSON: Format("json", JSON, _json),
    ExportFormat.JSONL: Format("jsonl", "application/x-ndjson", _json_lines),
    ExportFormat.UIMESSAGES: Format("json", JSON, _ui_messages),
    ExportFormat.CASSETTE: Format("json", JSON, _cassette),
    ExportFormat.ATIF: Format("json", JSON, _atif),
    ExportFormat.OTEL: Format("json", JSON, _otel),
    ExportFormat.ANTHROPIC: Format("json", JSON, _request("anthropic")),
    ExportFormat.OPENAI_CHAT: Format("json", JSON, _request("openai-chat")),
    ExportFormat.OPENROUTER: Format("json", JSON, _request("openrouter")),
    ExportFormat.RESPONSES: Format("json", JSON, _request("responses")),
    ExportFormat.GEMINI: Format("json", JSON, _request("gemini")),
}
"""Name -> how it is written."""

_LARGEST = 50 * 1024 * 1024

_SCHEME = "file://"


def load_local_file(part: FilePart) -> bytes | None:
    """The bytes of the very file that was shown to the model; None where it is gone, another, or not known well."""
    from turnlog.providers.request_parts import agent_fact

    wanted = agent_fact(part.metadata, "sha256")
    if not isinstance(wanted, str) or part.url is None or not part.url.startswith(_SCHEME):
        return None
    path = Path(part.url.removeprefix(_SCHEME))
    try:
        data = path.read_bytes() if path.is_file() and path.stat().st_size <= _LARGEST else b""
    except (OSError, ValueError):
        return None
    return data if hashlib.sha256(data).hexdigest() == wanted.lower() else None
