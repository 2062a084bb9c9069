"""The table of formats: what each is called, what it is made of, and who makes it."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from turnlog.errors import ConversionError
from turnlog.exports.source import Source, is_shown
from turnlog.model import HistoryEvent, Membership, Message
from turnlog.model.codec import encode

JSON = "application/json"


class Output(NamedTuple):
    """A document in pieces, and what it does not carry or had to change: kind and place of each."""

    pieces: Iterable[bytes]
    losses: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


class Format(NamedTuple):
    """A way to write a session."""

    extension: str
    media_type: str
    write: Callable[[Source, str | None], Output]
    """Takes the session and the model that a request asks."""


def _markdown(source: Source, _model: str | None) -> Output:
    from turnlog.formats.markdown import to_markdown

    blocks = to_markdown(source.session, source.history(), names=source.names(), read_spill=source.read_spill)
    return Output([block.encode() for block in blocks])


def _html(source: Source, _model: str | None) -> Output:
    from turnlog.formats.html import Conversation, to_html

    shown = [Conversation(each.session, each.told(), each.read_spill) for each in source.with_subagents()]
    return Output(to_html(shown))


def _json(source: Source, _model: str | None) -> Output:
    from turnlog.formats.json import to_json

    events = source.history()
    return Output(list(to_json(source.session, events, source.outputs(events))))


def _json_lines(source: Source, _model: str | None) -> Output:
    from turnlog.formats.json import to_json_lines

    events = source.history()
    hidden = [("output", f"the whole of {name} is not among the lines") for name in source.outputs(events)]
    return Output(to_json_lines(events), tuple(_grouped(hidden)))


def _ui_messages(source: Source, _model: str | None) -> Output:
    from turnlog.aisdk.convert import to_ui_json

    bodies = [encode(message) for message, place in source.placed() if is_shown(place)]
    made = to_ui_json(bodies, children=source.children())
    return Output([made.to_json(), b"\n"], tuple(_grouped((loss.feature, loss.reason) for loss in made.losses)))


def _cassette(source: Source, _model: str | None) -> Output:
    from turnlog.cassette.recording import History, record
    from turnlog.cassette.tape import to_json

    made = record([History(each.session, each.placed(), each.events()) for each in source.with_subagents()])
    return Output([to_json(made.cassette)], tuple(_grouped(made.losses)))


class _History(NamedTuple):
    """What `select_context` chooses from."""

    messages: Sequence[Message]
    memberships: Sequence[Membership]
    events: Sequence[HistoryEvent]


def _request(name: str) -> Callable[[Source, str | None], Output]:
    def write(source: Source, model: str | None) -> Output:
        from turnlog.exports.local_files import load_local_file
        from turnlog.providers import provider
        from turnlog.providers.base import RequestOptions
        from turnlog.providers.context import select_context

        placed = source.placed()
        history = _History([message for message, _ in placed], [place for _, place in placed], source.events())
        context = select_context(history)
        options = RequestOptions(model=model or _last_model(context.messages), load_file=load_local_file)
        made = provider(name).to_request(context.messages, options)
        repairs = (*context.repairs, *made.repairs)
        return Output(
            [msgspec.json.encode(made.body, enc_hook=_base64), b"\n"],
            tuple(_grouped((loss.kind, f"message {loss.message_id}: {loss.detail}") for loss in made.losses)),
            tuple(_grouped((repair.kind, f"message {repair.message_id}: {repair.detail}") for repair in repairs)),
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
        raise ConversionError("no message names a model: say which one the request is for")
    return found


def _grouped(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One line a kind: how often, and the first place."""
    listed = list(told)
    counts = Counter(kind for kind, _ in listed)
    firsts: dict[str, str] = {}
    for kind, reason in listed:
        firsts.setdefault(kind, reason)
    for kind, reason in firsts.items():
        yield f"{kind}: {reason}" + (f" (and {counts[kind] - 1} more)" if counts[kind] > 1 else "")


FORMATS: dict[str, Format] = {
    "markdown": Format("md", "text/markdown; charset=utf-8", _markdown),
    "html": Format("html", "text/html; charset=utf-8", _html),
    "json": Format("json", JSON, _json),
    "jsonl": Format("jsonl", "application/x-ndjson", _json_lines),
    "uimessages": Format("json", JSON, _ui_messages),
    "cassette": Format("json", JSON, _cassette),
    "anthropic": Format("json", JSON, _request("anthropic")),
    "openai-chat": Format("json", JSON, _request("openai-chat")),
    "openrouter": Format("json", JSON, _request("openrouter")),
    "responses": Format("json", JSON, _request("responses")),
    "gemini": Format("json", JSON, _request("gemini")),
}
"""Name -> format, in the order of `--help`."""
