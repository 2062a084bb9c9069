"""The files of a task as lines of a log, and back, byte for byte.

The messages that the model got and those that the user saw are lists, each in a file. The log has their items in the
order of time, because only the second list has tokens, errors and times of older versions. A line in front says what
stood between the items, so that the files can be written as they were.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from turnlog.agents.base import RowUpdate, Source, SourceKind, Version
from turnlog.agents.databases import FACTS
from turnlog.agents.decoding import list_of, object_of, text_of, value_of
from turnlog.agents.files import read_regular_file
from turnlog.agents.json_file import locate_items
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import line_of, restore_file, rows_in, update_of

MESSAGES: Final = "api_conversation_history.json"
"""The messages as the model got them."""

SHOWN: Final = "ui_messages.json"
"""The messages as the user saw them."""

METADATA: Final = "task_metadata.json"
ITEM: Final = "history_item.json"
OTHERS: Final = (ITEM, METADATA)
"""Files about a task."""

HISTORY: Final = "taskHistory.json"
"""A list of all tasks, in the folder `state`."""

FORM: Final = "form"
"""The table of a line with the text between the items of a file."""

MODEL: Final = "model"
"""The table of a line that says which model is used from then on."""

SUBAGENT: Final = "subagent"
"""The note of the first line of a subtask."""

SUBTASK_TOOL: Final = "new_task"


def _task_of(source: Source) -> Path:
    return Path(source.path.partition("#")[0]).parent


def folder_version(task: Path, *, is_about: bool) -> Version:
    """The version of a task by the sizes and times of its files. Raises OSError if there are no messages."""
    others = [task / name for name in ((*OTHERS, f"../../state/{HISTORY}") if is_about else (SHOWN, METADATA))]
    parent = _parent_of(task) if is_about else None
    if parent is not None and Path(parent).name == parent:
        # The call that started a subtask is in the files of its parent.
        others += [task.with_name(parent) / name for name in (ITEM, MESSAGES)]
    found = [(task / MESSAGES).stat()]
    for path in others:
        try:
            found.append(path.stat())
        except OSError:
            continue
    size, newest = sum(each.st_size for each in found), max(each.st_mtime_ns for each in found)
    return size, newest, len(found), 0


def version_of(source: Source) -> Version:
    """See `RowAgent.row_version`."""
    return folder_version(_task_of(source), is_about=source.path.endswith(FACTS))


def read_rows(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """See `RowAgent.read_rows`."""
    task = _task_of(source)
    lines = _about(task) if source.kind is SourceKind.SIDECAR else _messages(task)
    return update_of(list(lines), log)


# -- messages


class ItemList(NamedTuple):
    """A file with a list, in pieces. Joined, they are the file."""

    name: str
    head: str
    separator: str
    tail: str
    items: list[str]


def list_in(name: str, text: str) -> ItemList:
    """The list in a file; one whose items are not separated alike, or that is damaged, is one piece."""
    data = text.encode()
    try:
        found: list[Raw] | dict[str, Raw] = msgspec.json.decode(data, type=list[Raw] | dict[str, Raw])
        items = found if isinstance(found, list) else msgspec.json.decode(found["messages"], type=list[Raw])
    except (KeyError, *UNREADABLE):
        return ItemList(name, text, "", "", [])
    places = [(position, position + length) for _, position, length in locate_items(items, data, 0)]
    if not places:
        return ItemList(name, text, "", "", [])
    gaps = {data[end : places[number + 1][0]] for number, (_, end) in enumerate(places[:-1])}
    if len(gaps) > 1:
        return ItemList(name, text, "", "", [])
    head, tail = data[: places[0][0]].decode(), data[places[-1][1] :].decode()
    pieces = [data[start:end].decode() for start, end in places]
    # Nearly all files have `,` there, also before there is a second item.
    return ItemList(name, head, gaps.pop().decode() if gaps else ",", tail, pieces)


def _read(path: Path) -> str:
    return read_regular_file(path, -1).decode(errors="replace")


class _Item(NamedTuple):
    file: str
    number: int
    text: str
    value: dict[str, Any]

    @property
    def time(self) -> float | None:
        found = self.value.get("ts")
        return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _messages(task: Path) -> Iterator[bytes]:
    lists = [list_in(name, _read(task / name)) for name in (MESSAGES, SHOWN)]
    note = SUBAGENT if _parent_of(task) else None
    for each in lists:
        if each.head or each.items:
            row = {"file": each.name, "head": each.head, "separator": each.separator, "tail": each.tail}
            yield line_of(FORM, row, note)
            note = None
    sent, shown = ([_Item(each.name, *piece) for piece in _pieces(each)] for each in lists)
    for item in _by_time(sent, shown, list(_models(task))):
        yield line_of(item.file, {"index": item.number, "item": item.text})


def _pieces(items: ItemList) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for index, text in enumerate(items.items):
        yield index, text, object_of(value_of(text.encode()))


def _models(task: Path) -> Iterator[_Item]:
    """Which model was used from when on, as Cline keeps it."""
    for index, used in enumerate(list_of(_object_at(task / METADATA).get("model_usage"))):
        fields = object_of(used)
        yield _Item(MODEL, index, msgspec.json.encode(fields).decode(), fields)


def _by_time(sent: Sequence[_Item], shown: Sequence[_Item], models: Sequence[_Item]) -> Iterator[_Item]:
    """The items of both lists in the order of time.

    Older versions write no time into what was sent: then the answer to a request, and what came before it, is in
    front of the next request.
    """
    waiting, changed = list(sent), list(models)
    requests = answers = 0
    for item in shown:
        while changed and _is_before(changed[0], item):
            yield changed.pop(0)
        is_request = item.value.get("say") == "api_req_started"
        while waiting and (_is_before(waiting[0], item) or (waiting[0].time is None and answers < requests)):
            if waiting[0].time is None and not is_request:
                break
            answers += waiting[0].value.get("role") == "assistant"
            yield waiting.pop(0)
        requests += is_request
        yield item
    yield from (*changed, *waiting)


def _is_before(item: _Item, other: _Item) -> bool:
    return item.time is not None and other.time is not None and item.time <= other.time


# -- what is known about a task


def _object_at(path: Path) -> dict[str, Any]:
    try:
        return object_of(msgspec.json.decode(read_regular_file(path, -1)))
    except UNREADABLE:
        return {}


def _parent_of(task: Path) -> str | None:
    return text_of(_object_at(task / ITEM).get("parentTaskId"))


def _about(task: Path) -> Iterator[bytes]:
    call = _call_of(task)
    for name in OTHERS:
        text = _read(task / name)
        if text:
            yield line_of(name, {"text": text}, call)
            call = None
    entry = _entry_of(task)
    if entry:
        yield line_of(HISTORY, {"item": msgspec.json.encode(entry).decode()})


def _entry_of(task: Path) -> dict[str, Any]:
    """What the list of all tasks says about one."""
    try:
        found = msgspec.json.decode(read_regular_file(task.parents[1] / "state" / HISTORY, -1))
    except UNREADABLE:
        return {}
    items = map(object_of, list_of(found))
    return next((each for each in items if str(each.get("id")) == task.name), None) or {}


def _call_of(task: Path) -> str | None:
    """The call that started a subtask: its parent lists its subtasks in the order of its calls."""
    parent = _parent_of(task)
    if parent is None or Path(parent).name != parent:
        return None
    folder = task.with_name(parent)
    children = list_of(_object_at(folder / ITEM).get("childIds"))
    sent = list_in(MESSAGES, _read(folder / MESSAGES))
    calls = [
        text_of(block.get("id"))
        for _, _, message in _pieces(sent)
        for block in map(object_of, list_of(message.get("content")))
        if block.get("type") == "tool_use" and block.get("name") == SUBTASK_TOOL
    ]
    place = children.index(task.name) if task.name in children else len(calls)
    return calls[place] if place < len(calls) else None


# -- writing the files again


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write the files of a task. Raises ConflictError if others are there."""
    folder = to / os.path.relpath(_task_of(source), source.root)
    contents: dict[str, str] = {}
    forms: dict[str, dict[str, Any]] = {}
    items: dict[str, dict[int, str]] = {}
    for table, row in rows_in(log):
        if table == FORM:
            forms[str(row.get("file"))] = row
        elif table in (MESSAGES, SHOWN):
            items.setdefault(table, {})[int(row.get("index") or 0)] = str(row.get("item"))
        elif table in OTHERS:
            contents[table] = str(row.get("text"))
    for name, form in forms.items():
        pieces = [text for _, text in sorted(items.get(name, {}).items())]
        body = str(form.get("separator") or "").join(pieces)
        contents[name] = f"{form.get('head') or ''}{body}{form.get('tail') or ''}"
    return [restore_file(folder / name, text.encode(), to) for name, text in sorted(contents.items())]
