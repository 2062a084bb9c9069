"""Everything of a store one after the other, and as tables: the same as its pages, and every example of the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from turnlog.errors import TurnlogError
from turnlog.exports import rows
from turnlog.exports.rows import FrameLibrary, every_message, every_session, every_tool_call
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "analysis.md").read_text()
EXAMPLES: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows") / "sample.db"
    sync(made, roots=[LOGS / "claude-code", LOGS / "codex"])
    return made


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


def test_all_pages_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = SessionFilter(subagents=True)
    listed = store.sessions(everything, limit=200).items
    placed = [(each.message.id, each.membership) for session in listed for each in store.messages(session.id)]
    called = store.tool_calls(limit=200).items
    monkeypatch.setattr(rows, "_PAGE", 3)
    assert [session.id for session in every_session(store, everything)] == [session.id for session in listed]
    assert [(each.message.id, each.membership) for each in every_message(store, everything)] == placed
    assert [call.tool_call_id for call in every_tool_call(store)] == [call.tool_call_id for call in called]
    assert len(placed) > len(listed) > 3


def test_nothing_is_read_before_it_is_needed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    read = store.sessions

    def sessions(*_: object, **__: object) -> Any:
        limits.append(1)
        return SimpleNamespace(items=list(read(limit=2).items), next_cursor="more")

    monkeypatch.setattr(store, "sessions", sessions)
    found = every_session(store)
    assert limits == []
    assert next(iter(found)).id
    assert limits == [1]


@pytest.mark.parametrize("every", [every_session, every_message, every_tool_call])
def test_a_path_is_no_open_store(every: Any) -> None:
    with pytest.raises(TypeError, match=r"store cannot be 'x\.db' .*: expected an open store, as open_store\(path\)"):
        every("x.db")


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_frame_has_a_row_each_and_the_same_sums(store: Store, name: FrameLibrary) -> None:
    listed = store.sessions(limit=200).items
    frame = every_session(store).to_frame(name)
    assert type(frame).__module__.startswith(name)
    assert len(frame) == len(listed)
    assert frame["input"].sum() == sum(session.usage.usage.input or 0 for session in listed)
    assert len(every_message(store).to_frame(name)) == len(list(every_message(store)))
    assert set(every_tool_call(store).to_frame(name)["tool_name"]) >= {"Bash", "Edit"}


def test_an_empty_frame_has_its_columns(store: Store) -> None:
    frame = every_session(store, SessionFilter(title="no such title")).to_frame("polars")
    assert (len(frame), "cost" in frame.columns) == (0, True)


def test_without_a_library_it_is_reported_which_to_install(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("polars", "pandas"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def missing(name: str) -> None:
        return None

    monkeypatch.setattr(rows, "find_spec", missing)
    with pytest.raises(TurnlogError, match="pip install polars"):
        every_session(store).to_frame()
    with pytest.raises(TurnlogError, match="pip install pandas"):
        every_session(store).to_frame("pandas")


def test_the_examples_run(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(path.parent)
    names: dict[str, object] = {"__name__": "example"}
    assert PAGE.count("\n## ") == len(EXAMPLES) - 1 == 10
    for code in EXAMPLES[:1]:
        exec(compile(code, "docs/how-to/analysis.md", "exec"), names)
    capsys.readouterr()
    for code in EXAMPLES[1:]:
        exec(compile(code, "docs/how-to/analysis.md", "exec"), names)
        assert capsys.readouterr().out.strip(), code


def test_a_sum_of_the_page_is_null_where_nothing_is_known(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(EXAMPLES[0], "docs/how-to/analysis.md", "exec"), names)
    names["store"].close()
    frame = names["pl"].DataFrame({"model": ["a", "a", "b"], "input": [1, None, None], "cost": [0.5, 0.25, None]})
    summed = frame.group_by("model").agg(names["known_sum"]("input", "cost")).sort("model")
    assert summed.rows() == [("a", 1, 0.75), ("b", None, None)]
    assert [
        code for code in EXAMPLES[1:] if 'pl.col("cost").sum()' in code or '"output", "reasoning").sum()' in code
    ] == []
