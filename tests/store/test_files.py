"""Which sessions touched a file: whatever tool it was, however the path was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.errors import NotFoundError
from turnlog.model import Message, ToolCallPart, ToolKind, ToolState
from turnlog.model.codec import to_json
from turnlog.store import open_store
from turnlog.store.base import FileFilter, Store
from turnlog.store.connection import connect
from turnlog.store.rows import resolve_path, spellings, touched_paths
from turnlog.store.sqlite.forget import forget_for_good

PATCH = """*** Begin Patch
*** Update File: src/till.py
@@
-old
+new
*** Add File: src/new file.py
+hello
*** Delete File: /w/shop/gone.py
*** Update File: a.py
*** Move to: b.py
*** End Patch"""


def call(id: str, kind: ToolKind, *, text: str | None = None, **fields: Any) -> ToolCallPart:
    given: dict[str, Any] = {"input_text": text} if text is not None else {"input": to_json(fields)}
    state = ToolState.OUTPUT_AVAILABLE
    return ToolCallPart(tool_call_id=id, tool_name=kind.title(), kind=kind, state=state, **given)


def answer(id: str, minute: float, *parts: ToolCallPart) -> Message:
    return Message(id=id, role="assistant", created_at=at(minute), parts=parts)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = tmp_path / "home"
    home.mkdir()
    shop = Log(home, "shop")
    shop.session(project_path="/w/shop", cwd="/w/shop")
    shop.message(answer("m1", 1, call("c1", ToolKind.READ, file_path="/w/shop/src/till.py")))
    shop.message(
        answer("m2", 2, call("c2", ToolKind.EDIT, path="./src/till.py"), call("c3", ToolKind.EXECUTE, path="x"))
    )
    shop.message(answer("m3", 3, call("c4", ToolKind.EDIT, text=PATCH)))
    blog = Log(home, "blog")
    blog.session(project_path="/w/blog", cwd="/w/blog")
    blog.message(answer("n1", 4, call("d1", ToolKind.EDIT, filePath="src/till.py")))
    blog.message(answer("n2", 5, call("d2", ToolKind.READ, filePath="/w/shop/src/till.py")))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as found:
        yield found


def calls(store: Store, path: str, **options: Any) -> list[str]:
    return [touch.call.tool_call_id for touch in store.file_history(path, **options).touches.items]


def test_a_file_is_found_however_its_path_was_written(store: Store) -> None:
    assert calls(store, "/w/shop/src/till.py") == ["d2", "c4", "c2", "c1"]
    assert calls(store, "/w/shop/src/../src/till.py") == ["d2", "c4", "c2", "c1"]
    assert calls(store, "/w/blog/src/till.py") == ["d1"]
    assert calls(store, "/w/other/src/till.py") == []


def test_the_end_of_a_path_means_every_such_file(store: Store) -> None:
    assert calls(store, "src/till.py") == ["d2", "d1", "c4", "c2", "c1"]
    assert calls(store, "shop/src/till.py") == ["d2", "c4", "c2", "c1"]
    assert calls(store, "ill.py") == []
    assert calls(store, "%") == []


def test_what_each_session_did_is_added_up(store: Store) -> None:
    """R-S22."""
    uses = store.file_history("/w/shop/src/till.py").uses
    assert [use.session_id for use in uses] == ["plain:blog", "plain:shop"]
    assert (uses[1].calls, uses[1].edits, uses[1].kinds) == (3, 2, ("edit", "read"))
    assert (uses[1].first_at, uses[1].last_at) == (at(1), at(3))
    assert calls(store, "/w/shop/src/till.py", changed=True) == ["c4", "c2"]


def test_a_patch_touches_every_file_that_it_names(store: Store) -> None:
    for path in ("/w/shop/src/new file.py", "/w/shop/gone.py", "/w/shop/a.py", "/w/shop/b.py"):
        (touch,) = store.file_history(path).touches.items
        assert (touch.path, touch.call.tool_call_id, touch.part) == (path, "c4", 0)


def test_pages_go_on_where_the_last_one_ended(store: Store) -> None:
    found: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        history = store.file_history("/w/shop/src/till.py", limit=1, cursor=cursor)
        assert len(history.uses) == 2
        found += [touch.call.tool_call_id for touch in history.touches.items]
        cursor = history.touches.next_cursor
    assert found == ["d2", "c4", "c2", "c1"]
    assert cursor is None
    with pytest.raises(ValueError, match="cursor"):
        store.file_history("/w/shop/src/till.py", cursor="nonsense")


def test_files_are_listed_under_their_whole_path(store: Store) -> None:
    files = {file.path: file for file in store.touched_files()}
    assert set(files) == {
        "/w/shop/src/till.py",
        "/w/blog/src/till.py",
        "/w/shop/src/new file.py",
        "/w/shop/gone.py",
        "/w/shop/a.py",
        "/w/shop/b.py",
    }
    till = files["/w/shop/src/till.py"]
    assert (till.sessions, till.calls, till.edits, till.last_at) == (2, 4, 2, at(5))
    assert store.touched_files(limit=1)[0] == till


def test_files_can_be_requested(store: Store) -> None:
    def paths(**wanted: Any) -> set[str]:
        return {file.path for file in store.touched_files(FileFilter(**wanted))}

    assert paths(text="BLOG/src") == {"/w/blog/src/till.py"}
    assert paths(project="blog") == {"/w/blog/src/till.py", "/w/shop/src/till.py"}
    assert paths(session="plain:blog") == {"/w/blog/src/till.py", "/w/shop/src/till.py"}
    assert paths(session="plain:blog", changed=True) == {"/w/blog/src/till.py"}
    assert paths(agent="nobody") == set()
    with pytest.raises(NotFoundError):
        paths(session="plain:none")


def test_forgetting_a_session_forgets_its_files(store: Store, tmp_path: Path) -> None:
    forget_for_good(tmp_path / "turnlog.db", "plain:shop")
    connection = connect(tmp_path / "turnlog.db")
    assert connection.execute("SELECT count(*) FROM more_paths").fetchone() == (0,)
    connection.close()
    assert calls(store, "/w/shop/src/till.py") == ["d2"]


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"file_path": "a", "path": "b"}, ("a",)),
        ({"path": "a", "destination": "b"}, ("a", "b")),
        ({"paths": ["a", "b", 7, "a"]}, ("a", "b")),
        ({"changes": {"a": {"add": {}}, "b": {}}}, ("a", "b")),
        ({"changes": [{"path": "a"}, {"kind": "add"}]}, ("a",)),
        ({"patchText": "*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        ({"input": "*** Begin Patch\n*** Delete File: a\n"}, ("a",)),
        ({"file_path": "", "path": 7}, ()),
        ({}, ()),
    ],
)
def test_inputs_name_files_in_many_ways(fields: dict[str, Any], paths: tuple[str, ...]) -> None:
    assert touched_paths(call("c", ToolKind.EDIT, **fields)) == paths
    assert touched_paths(call("c", ToolKind.EXECUTE, **fields)) == ()


def test_paths_of_other_systems_stay_as_they_are() -> None:
    assert resolve_path("C:\\work\\shop.py", "/w") == "C:\\work\\shop.py"
    assert resolve_path("~/notes.md", "/w") == "~/notes.md"
    assert resolve_path("../b.py", "/w/shop") == "/w/b.py"
    assert resolve_path("./b.py", None) == "b.py"
    assert spellings("/w/a.py") == ["/w/a.py", "w/a.py", "a.py", "./w/a.py", "./a.py"]
