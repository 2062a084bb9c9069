"""What a user attached to a message, as a model can get it: files that are elsewhere, and data of the application.

A page may name a file by an address of the application (`/uploads/a.png`), or by the id under which a provider has it
(`providerReference`). The application loads the first; the second goes to that provider as it is. Both come from the
page, so nothing here opens an address.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from turnlog.chat.runtime import RunRequest, is_async, resolved
from turnlog.model import DataPart, FilePart, Message, Part, ProviderData, TextPart, UnknownPart

LoadAttachment: TypeAlias = Callable[[FilePart, RunRequest], Awaitable[bytes | None] | bytes | None]
"""Returns the bytes of a file that a page names by an address of the application (`FilePart.url`); None if there are
none, or its user may not have them. A function that is not async runs in a thread."""

WriteData: TypeAlias = Callable[[DataPart, RunRequest], Awaitable[TextPart | FilePart | str | None] | Any]
"""Returns the text or file that a model gets for a data part of the user's; None to leave it out."""

_OWNERS: Final = {
    "anthropic": ("anthropic",),
    "responses": ("openai", "azure"),
    "openai-chat": ("openai", "azure"),
    "gemini": ("google", "gemini", "vertex", "googleVertex"),
    "openrouter": ("openrouter",),
}
"""Provider -> the names under which `providerReference` has its id."""

_PUBLIC: Final = re.compile("https?://|data:", re.IGNORECASE)
"""Addresses that a provider opens itself, or that hold the bytes."""

_EMPTY: Final = "The message is empty: write a text, or attach a file."


class Attached(NamedTuple):
    """A history with its attachments as a model gets them."""

    messages: list[Message]
    unsent: dict[str, str]
    """Message of a user -> why a file of it cannot be sent."""

    @property
    def refusal(self) -> str | None:
        """Why the newest prompt, if it is the last message, cannot be answered."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "user":
            return None
        is_empty = all(isinstance(part, TextPart) and not part.text.strip() for part in last.parts)
        return _EMPTY if is_empty else self.unsent.get(last.id)


class Attachments:
    """Makes what users attached sendable."""

    def __init__(self, provider: str, load_file: LoadAttachment | None, write_data: WriteData | None) -> None:
        """Load and write by the functions of the application."""
        self._owners = _OWNERS.get(provider, (provider,))
        self._load_file = load_file
        self._write_data = write_data

    async def in_history(self, history: Iterable[Message], request: RunRequest) -> Attached:
        """The history, with each attachment of its users in the form in which a model gets it."""
        unsent: dict[str, str] = {}
        messages = [
            await self._in_message(message, request, unsent) if _has_attachments(message) else message
            for message in history
        ]
        return Attached(messages, unsent)

    async def _in_message(self, message: Message, request: RunRequest, unsent: dict[str, str]) -> Message:
        parts: list[Part] = []
        for part in message.parts:
            file = _file_of(part) if isinstance(part, UnknownPart) else None
            if isinstance(part, DataPart):
                parts.append(await self._data(part, request))
            elif file is None:
                parts.append(part)
            else:
                sendable, reason = await self._file(file, request)
                parts.append(sendable)
                if reason is not None:
                    unsent.setdefault(message.id, f"{file.filename or file.url or file.media_type}: {reason}")
        return replace(message, parts=tuple(parts))

    async def _file(self, file: FilePart, request: RunRequest) -> tuple[FilePart, str | None]:
        """The file as it can be sent, and why it cannot."""
        references = {} if file.provider is None else file.provider.opaque
        found = next((references[name] for name in self._owners if name in references), None)
        bare = replace(file, provider=None)
        if found is not None:
            return replace(bare, url=None, provider=ProviderData(name=self._owners[0], opaque={"file_id": found})), None
        if file.url and _PUBLIC.match(file.url):
            return bare, None
        # From here on nobody may open the address: a page can name any file of the server.
        hidden = replace(bare, url=None, filename=file.filename or file.url)
        if not file.url:
            return (
                hidden,
                f"it was uploaded to {' and '.join(references) or 'no provider'}, and not to {self._owners[0]}",
            )
        if self._load_file is None:
            return hidden, f"the server cannot load {file.url}"
        data = cast("bytes | None", await _called(self._load_file, bare, request))
        return (hidden, f"the server has no file {file.url}") if data is None else (replace(hidden, data=data), None)

    async def _data(self, part: DataPart, request: RunRequest) -> Part:
        if self._write_data is None:
            return TextPart(id=part.id, text=f"[data-{part.name}]\n{bytes(part.data).decode(errors='replace')}")
        written = await _called(self._write_data, part, request)
        if isinstance(written, str):
            return TextPart(id=part.id, text=written)
        return part if written is None else cast("Part", written)


def _has_attachments(message: Message) -> bool:
    return message.role == "user" and any(isinstance(part, UnknownPart | DataPart) for part in message.parts)


async def _called(function: Callable[..., Any], *given: Any) -> Any:
    """What a function of the application returns; one that is not async runs in a thread."""
    start = function if is_async(function) else partial(asyncio.to_thread, function)
    return await resolved(start(*given))


def _file_of(part: UnknownPart) -> FilePart | None:
    """A file part of a page whose bytes are elsewhere; its ids at providers are in `provider.opaque`."""
    fields = msgspec.json.decode(part.data) if part.kind == "file" else None
    if not isinstance(fields, dict):
        return None
    found = cast("dict[str, Any]", fields)
    media_type, name, references = found.get("mediaType"), found.get("filename"), found.get("providerReference")
    if not isinstance(media_type, str):
        return None
    return FilePart(
        id=part.id,
        media_type=media_type,
        filename=name if isinstance(name, str) else None,
        url=found["url"] if isinstance(found.get("url"), str) else None,
        provider=ProviderData(
            name="page", opaque=cast("dict[str, Any]", references) if isinstance(references, dict) else {}
        ),
    )
