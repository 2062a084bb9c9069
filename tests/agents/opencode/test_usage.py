"""OpenCode's counts in disjoint buckets, whatever its version put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.claude_files import calls_of
from support.opencode_files import AGENT, recorded, write_database
from turnlog.agents.opencode.messages import usage_of
from turnlog.model import Usage
from turnlog.store import open_store
from turnlog.sync.syncer import sync

NOTHING = Usage(input=0, output=0)

TOKENS = {"input": 1300, "output": 30, "reasoning": 0, "cache": {"read": 1200, "write": 0}}


@pytest.mark.parametrize(
    ("version", "provider", "model", "expected"),
    [
        ("1.0.61", "mock", "gpt-5", 100),
        ("0.5.29", "openrouter", "anthropic/claude-sonnet-4.5", 100),
        ("1.0.61", "anthropic", "claude-sonnet-4-5", 1300),
        ("1.0.98", "mock", "gpt-5", 1300),
        ("1.18.33", "mock", "gpt-5", 1300),
        (None, "mock", "gpt-5", 1300),
    ],
)
def test_cached_tokens_are_counted_once(version: str | None, provider: str, model: str, expected: int) -> None:
    """R-C5: recorded with 1.0.61, whose input contains them."""
    found = usage_of(TOKENS, version, provider=provider, model=model)
    assert found is not None
    assert (found.input, found.cache_read, found.output) == (expected, 1200, 30)


@pytest.mark.parametrize(
    "tokens",
    [
        {**TOKENS, "cache": {"read": 1200, "write": 7}},
        {**TOKENS, "cache": {"read": 1301, "write": 0}},
        {**TOKENS, "total": 2530},
    ],
    ids=["writes are told", "more cached than sent", "a newer version went on"],
)
def test_counts_that_show_that_they_are_apart_stay_as_they_are(tokens: dict[str, object]) -> None:
    found = usage_of(tokens, "1.0.61", provider="mock", model="gpt-5")
    assert found is not None
    assert found.input == 1300


def test_what_opencode_answers_itself_costs_no_tokens(tmp_path: Path) -> None:
    """R-C5: `!` and a command that is a subtask; the model was asked for none of these calls."""
    write_database(recorded("1.18.33", "commands"), tmp_path / "opencode.db")
    store = tmp_path / "turnlog.db"
    sync(store, roots=[tmp_path], agents=[AGENT])
    with open_store(store) as opened:
        session = opened.session("opencode:ses_dfc7d03a2ffe0R9CTfdy2Q29z8")
        messages = [placed.message for placed in opened.messages(session.id)]
    own = [[call.tool_name for call in calls_of(message)] for message in messages if message.usage == NOTHING]
    assert own == [["task"]]
    assert session.usage.unknown_calls == 0
    assert session.usage.usage.output == 244
