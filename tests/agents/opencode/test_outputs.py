"""Outputs too large for OpenCode's history: kept, found, joined to their results, given back, forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.opencode_files import AGENT, DATA, read_table_rows, recorded, write_database
from turnlog.agents.base import SourceKind
from turnlog.agents.opencode.tools import spilled_to
from turnlog.errors import NotFoundError
from turnlog.logs import extract_tool_calls, read_session
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.searcher import Searcher
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

NAME = "tool_1fbca909f001b4rQn2tFCbNY5Y"
SESSION = "opencode:ses_e04357bedffeDSZeWHkfzvvxKy"
WHOLE = "".join(f"{number}\n" for number in range(1, 60001)) + "heliotrope\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home whose session spilled an output; a file that nobody names lies beside it."""
    root = tmp_path / "opencode"
    write_database(recorded("1.18.33", "samples"), root / "opencode.db")
    folder = root / "tool-output"
    folder.mkdir()
    (folder / NAME).write_text(WHOLE)
    (folder / "tool_1fbca909f001zzzzzzzzzzzzzz").write_text("of nobody")
    (folder / "tool_1fbca909f002zzzzzzzzzzzzzz").symlink_to("/etc/passwd")
    return root


@pytest.fixture
def store(tmp_path: Path, root: Path) -> Path:
    path = tmp_path / "store" / "turnlog.db"
    path.parent.mkdir()
    summary = sync(path, roots=[root], agents=[AGENT])
    assert summary.problems == []
    return path


def test_only_outputs_that_a_session_names_are_sources(root: Path) -> None:
    found = [source for source in AGENT.discover([root]) if source.kind is SourceKind.SPILL]
    assert [(Path(source.path).name, source.session_id) for source in found] == [(NAME, SESSION)]


def test_an_output_that_a_session_of_the_next_generation_names_is_a_source(tmp_path: Path) -> None:
    root, name = tmp_path / "opencode", "tool_1ff601820001yjIjI5d9gz2l2g"
    write_database(read_table_rows(DATA / "next" / "tour.jsonl"), root / "opencode.db")
    (root / "tool-output").mkdir()
    (root / "tool-output" / name).write_text("1\n2\n")
    found = [source for source in AGENT.discover([root]) if source.kind is SourceKind.SPILL]
    assert [source.session_id for source in found] == ["opencode:ses_e00a03f7cffeuR9tU4HKYTRf6r"]


def test_the_whole_output_is_joined_to_its_result_and_found(store: Path) -> None:
    """R-S43: also after the archive is read anew."""
    for _ in range(2):
        with open_store(store) as opened:
            messages = [placed.message for placed in opened.messages(SESSION)]
            names = [result.spilled_to for call in extract_tool_calls(messages) for result in call.results]
            assert NAME in names
            assert opened.spill(SESSION, NAME).decode() == WHOLE
        with Searcher(store, search_path(store)) as searcher:
            assert len(searcher.search("heliotrope", SearchFilter()).hits) == 1
        rebuild(store, agents=[AGENT])


def test_a_second_pass_finds_nothing(root: Path, store: Path) -> None:
    assert sync(store, roots=[root], agents=[AGENT]).changed == 0


def test_it_is_given_back_and_forgotten_with_its_session(store: Path, tmp_path: Path) -> None:
    connection = connect(store)
    restore_files(connection, SESSION, tmp_path / "back")
    connection.close()
    assert (tmp_path / "back" / "tool-output" / NAME).read_text() == WHOLE
    assert (tmp_path / "back" / "opencode.db").is_file()
    forget_for_good(store, SESSION)
    with open_store(store) as opened, pytest.raises(NotFoundError):
        opened.spill(SESSION, NAME)


def test_a_session_read_alone_has_it(root: Path) -> None:
    history = read_session(f"{root / 'opencode.db'}#{SESSION.partition(':')[2]}")
    assert history.read_spill(NAME).decode() == WHOLE


@pytest.mark.parametrize(
    ("text", "facts", "name"),
    [
        (f"Full output saved to: /data/opencode/tool-output/{NAME}\n", {}, NAME),
        ("cut", {"outputPath": f"C:\\data\\tool-output\\{NAME}"}, NAME),
        ("cut", {"outputPath": f"/elsewhere/{NAME}"}, None),
        ("Full output saved to: /data/tool-output/../../secret", {}, None),
        (None, {}, None),
    ],
)
def test_where_the_whole_lies(text: str | None, facts: dict[str, str], name: str | None) -> None:
    assert spilled_to(text, facts) == name
