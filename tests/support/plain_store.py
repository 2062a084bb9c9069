"""Stores for tests: what `plain_agent` logs say, read by the real reader and writer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.plain_agent import PlainAgent
from turnlog.agents.base import Agent
from turnlog.model import Usage
from turnlog.store.connection import connect
from turnlog.store.writing.prepared import Pricer
from turnlog.sync.reader import SourceReader

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)

PRICE_VERSION = "prices of the tests"


def at(minutes: float) -> datetime:
    """A time so many minutes after the start of the tests' history."""
    return START + timedelta(minutes=minutes)


def price(usage: Usage | None, model: str | None, provider: str | None, created_at: datetime | None) -> int | None:
    """A dollar for a thousand tokens, in nano-dollars; nobody knows the price of `secret`."""
    if usage is None or usage.total is None or model is None or model == "secret":
        return None
    return usage.total * 1_000_000


def read_home(store: Path, home: Path, agent: Agent | None = None, pricer: Pricer = price) -> None:
    """Bring the store up to date with every log of a home."""
    agent = agent or PlainAgent()
    connection = connect(store, checked=False)
    try:
        SourceReader(connection, pricer, PRICE_VERSION).read([(agent, source) for source in agent.discover([home])])
    finally:
        connection.close()
