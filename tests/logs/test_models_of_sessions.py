"""Answers whose model only the facts of their session name: they have it, and say where it is from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from turnlog.agents import agent
from turnlog.agents.changes import with_model
from turnlog.model import Message, Origin
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("name", "case", "model"),
    [
        ("droid", "droid/0.117.0/tour", "custom:Mock-0"),
        ("mistral-vibe", "mistral_vibe/2.8.0/resumed", "mock-model"),
        ("openhands", "openhands/1.16.0/stopped", "openai/mock-model"),
    ],
)
def test_an_answer_has_the_model_of_its_session(name: str, case: str, model: str, tmp_path: Path) -> None:
    """R-C22: also after a rebuild."""
    shutil.copytree(DATA / case, tmp_path / "home")
    sync(tmp_path / "store.db", roots=[tmp_path / "home"], agents=[agent(name)])
    for _ in range(2):
        with open_store(tmp_path / "store.db") as store:
            ids = [session.id for session in store.sessions(SessionFilter()).items]
            answers = [
                placed.message for each in ids for placed in store.messages(each) if placed.message.role == "assistant"
            ]
        assert answers
        assert {answer.model for answer in answers} == {model}
        assert {answer.metadata[name]["model_from"] for answer in answers} == {"session"}
        rebuild(tmp_path / "store.db")


def test_only_answers_without_a_model_get_one() -> None:
    named = Message(id="a", role="assistant", model="x")
    own = Message(id="b", role="assistant", origin=Origin.NOTIFICATION)
    assert with_model(named, "droid", "y") == named
    assert with_model(own, "droid", "y") == own
    facts = {"droid": {"effort": "high"}}
    given = with_model(Message(id="c", role="assistant", metadata=facts), "droid", "y")
    assert (given.model, given.metadata) == ("y", {"droid": {"effort": "high", "model_from": "session"}})
