"""What documents for people say of a session, a moment, a file or exact JSON, as plain text for a format to escape."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from turnlog.model import FilePart, MessageEvent, Session


def facts(session: Session) -> Iterator[tuple[str, str]]:
    """Name and value of what stands at the head of a document; what is unknown is left out."""
    place = session.project.path if session.project else session.cwd
    told: tuple[tuple[str, str | None], ...] = (
        ("Session", session.id),
        ("Agent", " ".join(word for word in (session.agent, session.agent_version) if word)),
        ("Folder", place),
        ("Branch", session.git_branch),
        ("Models", ", ".join(session.models)),
        ("Begun", moment(session.created_at)),
    )
    yield from ((name, value) for name, value in told if value)


def moment(at: datetime | None) -> str | None:
    """A time in UTC, to the second."""
    return None if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def speaker(event: MessageEvent) -> list[str]:
    """Who said a message, why, in which step and when."""
    message, place = event.message, event.membership
    words = (
        message.role.capitalize(),
        message.origin.value.replace("_", " ") if message.origin else None,
        message.model,
        f"step {place.step}" if place is not None and place.step is not None else None,
        moment(message.created_at),
    )
    return [word for word in words if word]


def file_words(part: FilePart) -> tuple[str, list[str]]:
    """`Image` or `File`, and its name or address, media type and size."""
    kind = "Image" if part.media_type.startswith("image/") else "File"
    size = part.blob.size if part.blob else None if part.data is None else len(part.data)
    address = None if part.url is None or part.url.startswith("data:") else part.url
    told = (part.filename or address, part.media_type, None if size is None else f"{size:,} bytes")
    return kind, [word for word in told if word]


def pretty(data: msgspec.Raw) -> str:
    """Exact JSON with line breaks between its values."""
    try:
        return msgspec.json.format(bytes(data), indent=2).decode(errors="replace")
    except (msgspec.DecodeError, RecursionError):
        return bytes(data).decode(errors="replace")
