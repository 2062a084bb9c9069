"""Messages as they are written: everything of a row that needs no database, from the body to the columns of its parts.

A large import prepares messages in other processes (`sync.folding`), so a `PreparedMessage` can be pickled. A message
that is stored already is merged instead (`writing.message_updates`): it is then read again from its JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import msgspec

from turnlog.agents.changes import MessageChange, Placement
from turnlog.model import Message, Usage
from turnlog.store import bodies
from turnlog.store.external_content import Feed, leave_out
from turnlog.store.packed_columns import pack_ids, pack_records
from turnlog.store.rows import (
    MessageColumns,
    MessageFacts,
    UsageAdded,
    believable,
    message_buckets,
    message_columns,
    message_facts,
    usage_added,
)

Pricer = Callable[[Usage | None, str | None, str | None, datetime | None], int | None]
"""Usage of a call, its model, who served it, its time -> nano-dollars, or None if the price is unknown."""


class Reading(Protocol):
    """One reading of a message: to insert, if the message is new, or to merge into the stored one."""

    @property
    def id(self) -> str:
        """The message's id."""
        ...

    @property
    def placement(self) -> Placement:
        """Its place in the session."""
        ...

    def prepared(self) -> PreparedMessage:
        """The message as it is written."""
        ...

    def change(self) -> MessageChange:
        """The message as the fold returned it."""
        ...

    def places(self) -> dict[bytes, bytes]:
        """Text -> place, for the long texts of the message that are archived (`external_content`)."""
        ...


class PreparedMessage(msgspec.Struct):
    """A message as it is written. It is a `Reading` itself."""

    id: str
    placement: Placement
    model: str | None
    facts: MessageFacts
    columns: MessageColumns
    cost: int | None
    """In nano-dollars; None if it is not a model call, or has no known price."""
    usage: UsageAdded | None
    """What it adds to usage totals; None if it is not a model call."""
    body: bytes
    """The JSON to store."""
    records: bytes
    """`memberships.records`."""
    record_ids: bytes | None
    """`memberships.record_ids`."""
    archived: dict[bytes, bytes]
    """Text -> place, for the texts that `body` leaves out."""
    blobs: list[bodies.ExternalContent]
    """Contents that `body` refers to."""
    whole: bytes | None
    """The JSON of the whole message; None if that is `body`."""

    def prepared(self) -> PreparedMessage:
        """The message itself."""
        return self

    def change(self) -> MessageChange:
        """The message as the fold returned it, read from its JSON."""
        return MessageChange(message=bodies.decode(self.whole or self.body), placement=self.placement)

    def places(self) -> dict[bytes, bytes]:
        """Text -> place, for the long texts of the message that are archived."""
        return self.archived


class FoldedMessage:
    """A `Reading` that is prepared when it turns out to be new."""

    __slots__ = ("_change", "_feed", "_price", "id", "placement")

    def __init__(self, change: MessageChange, feed: Feed | None, price: Pricer) -> None:
        """`feed` is as for `prepare`."""
        self.id = change.message.id
        self.placement = change.placement
        self._change = change
        self._feed = feed
        self._price = price

    def prepared(self) -> PreparedMessage:
        """The message as it is written."""
        return prepare(self._change, self._feed, self._price)

    def change(self) -> MessageChange:
        """The message as the fold returned it."""
        return self._change

    def places(self) -> dict[bytes, bytes]:
        """Text -> place, for the long texts of the message that are archived."""
        return _places(self._change, self._feed)


def prepare(change: MessageChange, feed: Feed | None, price: Pricer, *, for_transport: bool = False) -> PreparedMessage:
    """A message as it is written.

    Args:
        change: The message and its place.
        feed: The bytes that it was read from, where these can be read again in the archive.
        price: Prices a model call.
        for_transport: It goes to another process, which may have to merge it: keep all of its JSON.
    """
    message, placement = change.message, change.placement
    facts = message_facts(message)
    blobs: list[bodies.ExternalContent] = []
    whole, external = _packed(message, facts, blobs)
    archived = _places(change, feed)
    body = leave_out(external, archived)
    cost = call_cost(message, price)
    buckets = message_buckets(message)
    columns = message_columns(message, facts, cost, buckets)
    return PreparedMessage(
        id=message.id,
        placement=placement,
        model=message.model,
        facts=facts,
        columns=columns,
        cost=cost,
        usage=usage_added(message, cost, columns.created_at, buckets),
        body=body,
        records=pack_records(placement.records),
        record_ids=pack_ids(placement.record_ids, message.id),
        archived=archived,
        blobs=blobs,
        whole=None if body is whole or not for_transport else whole or bodies.pack_fresh(message),
    )


def call_cost(message: Message, price: Pricer) -> int | None:
    """The cost of a model call, in nano-dollars; None if it is not one or has no known price."""
    if message.usage is None or message.role != "assistant":
        return None
    provider = message.provider.name if message.provider else None
    return believable(price(message.usage, message.model, provider, message.created_at))


def _places(change: MessageChange, feed: Feed | None) -> dict[bytes, bytes]:
    return {} if feed is None else feed.places(change.message, change.placement.records)


def _packed(message: Message, facts: MessageFacts, blobs: list[bodies.ExternalContent]) -> tuple[bytes | None, bytes]:
    """The JSON of the whole message (None if that is huge), and the JSON to store; large contents go to `blobs`."""
    # Packing a huge text would only copy it.
    whole = bodies.pack_fresh(message) if facts.text_size <= bodies.LARGE else None
    # Only a larger body can contain a text that becomes a blob.
    if whole is not None and len(whole) <= bodies.TEXT_LIMIT and not facts.has_files and not facts.has_structured:
        return whole, whole
    external = bodies.externalize(message, blobs)
    return whole, whole if whole is not None and external is message else bodies.pack_fresh(external)
