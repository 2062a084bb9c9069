"""Exports of ChatGPT and of Claude.ai: trees of messages, their calls and files, in a folder or a zip."""

from __future__ import annotations

import json
import re
import shutil
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from turnlog.agents import agent, detect
from turnlog.agents.base import RowAgent
from turnlog.agents.chat_exports.trees import ExportNode, in_order, nearest
from turnlog.errors import FormatError
from turnlog.model import (
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolState,
)
from turnlog.model.lenient_json import without_lone_surrogates
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.values import PlacedMessage
from turnlog.sync.importing import import_file
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data/chat_exports/handwritten"
CHATGPT, CLAUDE_AI = DATA / "chatgpt/2026-06", DATA / "claude_ai/data-2026-06"
SUM, CAT = (f"chatgpt:6a00000{n}-{str(n) * 4}-4{str(n) * 3}-8{str(n) * 3}-{str(n) * 12}" for n in (1, 2))
GARLIC, WORD = (f"claude-ai:5b00000{n}-3333-4333-8333-333333333333" for n in (1, 2))


def rows_agent(name: str) -> RowAgent:
    found = agent(name)
    assert isinstance(found, RowAgent)
    return found


def zipped(folder: Path, to: Path) -> Path:
    with zipfile.ZipFile(to, "w") as archive:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            archive.write(file, file.relative_to(folder))
    return to


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


def placed(database: Path, session: str) -> list[PlacedMessage]:
    with open_store(database) as store:
        return list(store.messages(session))


def messages(database: Path, session: str) -> list[Message]:
    return [each.message for each in placed(database, session)]


def calls(found: list[Message]) -> list[ToolCallPart]:
    return [part for message in found for part in message.parts if isinstance(part, ToolCallPart)]


def words(message: Message) -> str:
    return " ".join(part.text for part in message.parts if isinstance(part, TextPart | ReasoningPart))


def everything(database: Path) -> list[Any]:
    """All that a store says of its sessions, without where it was read."""
    with open_store(database) as store:
        sessions = sorted(store.sessions(SessionFilter(), limit=100).items, key=lambda each: each.id)
        told = [
            (each.id, each.title, each.created_at, each.updated_at, each.counts, each.git_branch) for each in sessions
        ]
        return [told, [[each.message for each in store.messages(session.id)] for session in sessions]]


# -- ChatGPT


def test_a_conversation_is_ordered_by_time_with_results_at_calls(database: Path) -> None:
    """R-K7"""
    summary = import_file(database, CHATGPT / "conversations.json")
    assert (summary.agent, summary.new_sessions, summary.problems) == ("chatgpt", 2, [])
    found = messages(database, SUM)
    assert [message.role for message in found[:3]] == ["developer", "user", "assistant"]
    assert words(found[0]) == "I am a bookkeeper.\n\nAnswer in short."
    assert found[0].origin is Origin.HARNESS
    assert found[1].metadata["chatgpt"] == {"attached": ["amounts.csv"]}
    failed, summed, drawn, searched = calls(found)
    assert [call.tool_name for call in (failed, summed, drawn, searched)] == [
        "python",
        "python",
        "t2uay3k.sj1i4kz",
        "web.run",
    ]
    assert failed.state is ToolState.OUTPUT_ERROR
    assert failed.results[0].error_text == "No such file: /mnt/data/amounts.txt"
    assert summed.results[0].output_text == "41.5"
    assert summed.input_value()["command"].endswith("open('/mnt/data/amounts.csv'))))")
    assert searched.input_value() == {"search_query": [{"q": "rounding of amounts"}]}
    assert {call.results[0].status for call in (summed, drawn, searched)} == {"success"}


def test_thoughts_and_their_recap_belong_to_the_answer_behind_them(database: Path) -> None:
    import_file(database, CHATGPT / "conversations.json")
    thinking, _, summed = [message for message in messages(database, SUM) if message.role == "assistant"][:3]
    assert [part.type for part in thinking.parts] == ["reasoning", "reasoning", "tool-call"]
    assert words(thinking).startswith("Reading the table\nThe amounts are in the second column.")
    assert thinking.model == "gpt-5-1"
    assert words(summed) == "The amounts add up to **41.50**."
    assert summed.stop_reason == "stop"


def test_the_branch_that_was_left_is_marked(database: Path) -> None:
    import_file(database, CHATGPT / "conversations.json")
    left = [words(each.message) for each in placed(database, SUM) if each.membership.fate is Fate.REWOUND]
    assert left == ["Draw them as bars.", "", "Here they are."]
    asked = next(each for each in placed(database, SUM) if "largest" in words(each.message))
    before = next(each for each in placed(database, SUM) if "41.50" in words(each.message))
    assert asked.membership.parent_id == before.message.id


def test_an_answer_that_was_stopped_is_an_interrupt(database: Path) -> None:
    import_file(database, CHATGPT / "conversations.json")
    with open_store(database) as store:
        stopped = [event for event in store.events(SUM) if isinstance(event, InterruptEvent)]
    assert [event.message_id for event in stopped] == [messages(database, SUM)[-1].id]
    assert messages(database, SUM)[-1].stop_reason == "aborted"


def test_a_session_has_its_title_and_times_and_no_tokens(database: Path) -> None:
    import_file(database, CHATGPT / "conversations.json")
    with open_store(database) as store:
        session = store.session(CAT)
    assert session is not None
    assert (session.title, session.title_source, session.cwd) == ("Name for a cat", "generated", None)
    assert session.metadata["chatgpt"]["gizmo_id"] == "g-0001"
    assert session.totals == ()
    assert [message.usage for message in messages(database, CAT)] == [None] * 5


@pytest.mark.parametrize("is_zip", [False, True])
def test_images_are_taken_from_the_export(database: Path, tmp_path: Path, *, is_zip: bool) -> None:
    import_file(database, zipped(CHATGPT, tmp_path / "export.zip") if is_zip else CHATGPT / "conversations.json")
    data = (CHATGPT / "file-Cat0001-cat.png").read_bytes()
    shown = [part for message in messages(database, CAT) for part in message.parts if isinstance(part, FilePart)]
    drawn = [part for call in calls(messages(database, SUM)) for each in call.results for part in each.content]
    images = [*shown, *(part for part in drawn if isinstance(part, FilePart))]
    assert [(image.media_type, image.filename) for image in images] == [
        ("image/png", "file-Cat0001-cat.png"),
        ("image/png", "file_0000000bar5-bars.png"),
    ]
    with open_store(database) as store:
        found = [store.blob(image.blob.sha256).data if image.blob is not None else image.data for image in images]
    assert found == [data] * 2


@pytest.mark.parametrize("is_zip", [False, True])
def test_a_file_that_is_too_large_is_named(database: Path, tmp_path: Path, *, is_zip: bool) -> None:
    folder = tmp_path / "export"
    shutil.copytree(CHATGPT, folder)
    with (folder / "file-Cat0001-cat.png").open("r+b") as file:
        file.truncate((32 << 20) + 1)
    import_file(database, zipped(folder, tmp_path / "export.zip") if is_zip else folder)
    with open_store(database) as store:
        found = store.diagnostics().items
    assert [(each.session_id, each.severity, each.reason) for each in found] == [
        (CAT, "error", "larger than 32 MB, so left out: file-Cat0001-cat.png")
    ]


# -- Claude.ai


def test_an_assistant_message_is_one_answer_per_model_call(database: Path) -> None:
    summary = import_file(database, CLAUDE_AI / "conversations.json")
    assert (summary.agent, summary.new_sessions, summary.problems) == ("claude-ai", 2, [])
    prompt, first, second = messages(database, GARLIC)[:3]
    assert words(prompt) == "When do I plant garlic? Bed 1: sunny, dry."
    assert [part.type for part in first.parts] == ["reasoning", "text", "tool-call", "tool-call"]
    assert words(second) == "In **October**, in bed 1."
    search, fetch = calls([first])
    assert (search.state, search.results[0].output_text) == (ToolState.OUTPUT_AVAILABLE, "October, before the frost.")
    assert (fetch.state, fetch.results[0].error_text) == (ToolState.OUTPUT_ERROR, "The page does not answer.")
    assert search.started_at is not None
    assert search.results[0].completed_at is not None
    assert (search.results[0].completed_at - search.started_at).total_seconds() == 3


def test_the_newest_message_decides_which_branch_is_left(database: Path) -> None:
    import_file(database, CLAUDE_AI / "conversations.json")
    left = [words(each.message) for each in placed(database, GARLIC) if each.membership.fate is Fate.REWOUND]
    assert left == ["And onions?", "In March."]


def test_messages_of_an_old_export_follow_each_other(database: Path) -> None:
    """They have a text and no blocks, and name no parent."""
    import_file(database, CLAUDE_AI / "conversations.json")
    asked, answered = placed(database, WORD)
    assert (words(asked.message), words(answered.message)) == ("Say a word of five letters.", "Bread.")
    assert answered.membership.parent_id == asked.message.id
    with open_store(database) as store:
        session = store.session(WORD)
    assert session is not None
    assert (session.title, session.title_source) == ("Say a word of five letters.", "prompt")


# -- exports


@pytest.mark.parametrize(("folder", "name"), [(CHATGPT, "chatgpt"), (CLAUDE_AI, "claude-ai")])
def test_a_zip_says_what_its_folder_says(folder: Path, name: str, tmp_path: Path) -> None:
    import_file(tmp_path / "folder.db", folder / "conversations.json")
    summary = import_file(tmp_path / "zip.db", zipped(folder, tmp_path / "some export.zip"))
    assert summary.agent == name
    assert everything(tmp_path / "zip.db") == everything(tmp_path / "folder.db")


@pytest.mark.parametrize(("folder", "name"), [(CHATGPT, "chatgpt"), (CLAUDE_AI, "claude-ai")])
def test_a_restored_conversation_is_the_one_of_the_export(folder: Path, name: str, tmp_path: Path) -> None:
    """Byte for byte, and with its files; read again, it is the same session."""
    home = tmp_path / "home"
    shutil.copytree(folder, home / "one")
    reader = rows_agent(name)
    written: list[Path] = []
    originals = (folder / "conversations.json").read_bytes()
    for source in reader.discover([home]):
        for path in reader.restore_rows(source, reader.read_rows(source, ()).lines, tmp_path / "restored"):
            written.append(path)
            if path.name == "conversations.json":
                assert path.read_bytes()[1:-1] in originals
            else:
                assert path.read_bytes() == next(folder.rglob(path.name)).read_bytes()
    assert len(written) == (5 if name == "chatgpt" else 2)
    lists = [path for path in written if path.name == "conversations.json"]
    for path in lists:
        import_file(tmp_path / "again.db", path)
    import_file(tmp_path / "once.db", folder / "conversations.json")
    assert everything(tmp_path / "again.db") == everything(tmp_path / "once.db")


def test_a_later_export_extends_the_same_session(database: Path, tmp_path: Path) -> None:
    """A conversation that stands in several exports is one session."""
    home = tmp_path / "home"
    items = json.loads((CHATGPT / "conversations.json").read_text())
    early = json.loads(json.dumps(items[1]))
    removed = [name for name in early["mapping"] if name > "6a000002-0000-4000-8000-000000000003"]
    for name in [each for each in removed if each != "client-created-root"]:
        del early["mapping"][name]
    early["current_node"], early["update_time"] = "6a000002-0000-4000-8000-000000000003", early["create_time"] + 3
    for number, found in enumerate((early, items[1])):
        (home / str(number)).mkdir(parents=True)
        (home / str(number) / "conversations.json").write_text(json.dumps([found]))
        sync(database, roots=[home], agents=[agent("chatgpt")])
    with open_store(database) as store:
        assert [session.id for session in store.sessions(SessionFilter(), limit=9).items] == [CAT]
    assert [words(message) for message in messages(database, CAT)][-1] == "I will remember it."
    assert len(messages(database, CAT)) == 5


def test_nothing_changed_is_nothing_read(database: Path) -> None:
    sync(database, roots=[DATA / "chatgpt"], agents=[agent("chatgpt")])
    assert sync(database, roots=[DATA / "chatgpt"], agents=[agent("chatgpt")]).changed == 0


def test_an_export_of_one_is_not_taken_for_one_of_the_other(tmp_path: Path) -> None:
    for folder, name in ((CHATGPT, "chatgpt"), (CLAUDE_AI, "claude-ai")):
        assert detect(folder / "conversations.json").agent == name
        assert detect(zipped(folder, tmp_path / f"{name}.zip")).agent == name
    (tmp_path / "other.zip").write_bytes(zipped(DATA / "claude_ai/none", tmp_path / "none.zip").read_bytes())
    assert detect(tmp_path / "other.zip").agent is None


@pytest.mark.parametrize("place", [".", "export", "export.zip"])
@pytest.mark.parametrize("folder", [CHATGPT, CLAUDE_AI])
def test_a_folder_is_imported_as_the_list_in_it(database: Path, tmp_path: Path, folder: Path, place: str) -> None:
    """The export itself, what was unpacked next to other files, or a zip that is still packed."""
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    (downloads / "other.zip").write_bytes(zipped(DATA / "none", tmp_path / "none.zip").read_bytes())
    if place.endswith(".zip"):
        zipped(folder, downloads / place)
    else:
        shutil.copytree(folder, downloads / place, dirs_exist_ok=True)
    summary = import_file(database, downloads)
    assert (summary.new_sessions, summary.problems, summary.kind) == (2, [], "session")
    import_file(tmp_path / "other.db", folder / "conversations.json")
    assert everything(database) == everything(tmp_path / "other.db")
    assert not import_file(database, downloads).is_new
    assert not (database.parent / "imports").exists()


def test_all_lists_of_a_large_export_are_imported_or_reported(database: Path, tmp_path: Path) -> None:
    one, other = json.loads((CHATGPT / "conversations.json").read_bytes())
    shutil.copytree(CHATGPT, tmp_path / "export", ignore=shutil.ignore_patterns("conversations.json"))
    for number, listed in enumerate(([one], [other])):
        (tmp_path / f"export/conversations-{number:03}.json").write_text(json.dumps(listed))
    damaged = tmp_path / "export/conversations-002.json"
    damaged.write_bytes((CHATGPT / "conversations.json").read_bytes()[:-9])
    summary = import_file(database, tmp_path / "export")
    assert summary.new_sessions == 2
    assert [problem.path for problem in summary.problems] == [str(damaged)]
    images = [part for message in messages(database, CAT) for part in message.parts if isinstance(part, FilePart)]
    assert images != []
    damaged.write_bytes(b'[{"title": "x", "mapping": {')
    with pytest.raises(FormatError, match="its conversation 1, which begins at byte 1, is lost") as error:
        import_file(database, _only(damaged, tmp_path / "damaged"))
    assert error.value.path == tmp_path / "damaged" / damaged.name


@pytest.mark.parametrize("export", [CHATGPT, CLAUDE_AI])
@pytest.mark.parametrize("is_zip", [False, True])
def test_of_a_list_that_is_cut_off_the_conversations_before_are_read(
    tmp_path: Path, export: Path, *, is_zip: bool
) -> None:
    whole = json.loads((export / "conversations.json").read_bytes())
    pieces = [json.dumps(each).encode() for each in whole]
    second = 3 + 1 + len(pieces[0]) + 1
    data = b"\xef\xbb\xbf[" + b", ".join(pieces) + b"]"
    for cut in (second, second + 1, second + 40, len(data) - 9, len(data) - 2, len(data) - 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "conversations.json").write_bytes(data[:cut])
        path = zipped(folder, tmp_path / f"{cut}.zip") if is_zip else folder / "conversations.json"
        summary = import_file(folder / "turnlog.db", path)
        assert summary.new_sessions == 1
        [problem] = summary.problems
        place = f"cut off at byte {cut}: its conversation 2, which begins at byte {second}, is lost"
        assert (problem.path, place in problem.reason) == (str(path), True), problem.reason


def test_what_is_behind_the_end_of_a_list_is_named(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    data = (CHATGPT / "conversations.json").read_bytes().rstrip()
    path.write_bytes(data + b"\n{}")
    summary = import_file(database, path)
    assert summary.new_sessions == 2
    assert f"3 bytes behind the end of the list, at byte {len(data)}," in summary.problems[0].reason


def test_a_list_that_is_whole_again_is_read_whole(database: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    data = (CHATGPT / "conversations.json").read_bytes()
    (home / "conversations.json").write_bytes(data[:-9])
    summary = sync(database, roots=[home], agents=[agent("chatgpt")])
    assert (summary.new_sessions, len(summary.problems)) == (1, 1)
    (home / "conversations.json").write_bytes(data)
    summary = sync(database, roots=[home], agents=[agent("chatgpt")])
    assert (summary.new_sessions, summary.problems) == (1, [])
    with open_store(database) as store:
        assert [source.problem for source in store.sources() if source.problem] == []


def _only(file: Path, folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(file, folder)
    return folder


def test_exports_of_two_services_are_not_imported_as_one(database: Path, tmp_path: Path) -> None:
    shutil.copytree(CHATGPT, tmp_path / "one")
    shutil.copytree(CLAUDE_AI, tmp_path / "two")
    with pytest.raises(FormatError, match="exports of chatgpt and claude-ai"):
        import_file(database, tmp_path)


@pytest.mark.parametrize("damage", ["cut", "list"])
def test_a_damaged_export_is_reported_and_loses_nothing(database: Path, tmp_path: Path, damage: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = zipped(CHATGPT, home / "export.zip")
    sync(database, roots=[home], agents=[agent("chatgpt")])
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("conversations.json", (CHATGPT / "conversations.json").read_bytes()[:-9])
    summary = sync(database, roots=[home], agents=[agent("chatgpt")])
    assert [problem.path for problem in summary.problems] == [str(path)]
    assert len(messages(database, CAT)) == 5


# -- trees


def test_nodes_without_a_time_follow_their_parent() -> None:
    nodes = {
        "b": ExportNode("a", 2.0),
        "a": ExportNode(None, 1.0),
        "c": ExportNode("a", 0.0),
        "d": ExportNode("gone", 1.5),
        "e": ExportNode("f", 1.0),
        "f": ExportNode("e", 1.0),
    }
    assert list(in_order(nodes)) == ["a", "c", "d", "b", "e", "f"]
    assert nearest({"a": "b", "b": "a"}, {}, "a") is None
    assert nearest({"a": "b", "b": None}, {"b": 1}, "a") == 1


def test_a_zip_that_claims_to_hold_far_too_much_is_not_unpacked(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.agents.zip_members.ALWAYS", 1 << 20)
    path = tmp_path / "export.zip"
    listed = json.loads((CHATGPT / "conversations.json").read_bytes())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([*listed, {"pad": "a" * (8 << 20)}]))
    for is_first in (True, False):
        tracemalloc.start()
        try:
            with pytest.raises(FormatError, match=r"conversations.json is not unpacked: .* claim to be 8 MB"):
                import_file(database, path)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # The first one may have imported the modules of all agents.
        assert is_first or most < 4 << 20


def test_a_call_with_thousands_of_results_is_read_in_time(tmp_path: Path) -> None:
    """R-K7: where each result were added to a copy of all before it, four thousand would take ten seconds."""

    def node(
        name: str, parent: str | None, author: dict[str, str], text: str, recipient: str = "all"
    ) -> dict[str, Any]:
        content = {"content_type": "code" if recipient == "python" else "text", "text": text, "parts": [text]}
        return {"id": name, "parent": parent, "message": {"author": author, "recipient": recipient, "content": content}}

    nodes = [node("call", None, {"role": "assistant"}, "run()", "python")]
    nodes += [node(f"r{number}", "call", {"role": "tool", "name": "python"}, "x") for number in range(4000)]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"title": "t", "id": "many", "mapping": {each["id"]: each for each in nodes}}]))
    chatgpt = rows_agent("chatgpt")
    source = next(iter(chatgpt.sources_at(path, tmp_path)))
    data = b"".join(chatgpt.read_rows(source, ()).lines)
    began = time.process_time()
    changes = chatgpt.fold(source).feed(data, 0)
    assert time.process_time() - began < 2
    [found] = calls([each.message for each in changes.messages])
    assert len(found.results) == 4000


def test_a_conversation_of_many_megabytes_is_copied_a_few_times_at_most(database: Path, tmp_path: Path) -> None:
    """R-K7"""
    import_file(database, CHATGPT / "conversations.json")
    said = {"id": "m", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["word " * 4_000_000]}}
    listed = {"title": "t", "id": "long", "mapping": {"m": {"id": "m", "parent": None, "message": said}}}
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([listed]))
    tracemalloc.start()
    try:
        import_file(database, path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * 20_000_000
    [message] = messages(database, "chatgpt:long")
    assert len(words(message)) == 20_000_000


def test_a_zip_that_was_cut_off_is_refused_with_a_reason(database: Path, tmp_path: Path) -> None:
    path = zipped(CHATGPT, tmp_path / "export.zip")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FormatError, match=r"export.zip: cannot be read: no whole zip"):
        import_file(database, path)


IDS = (
    *("é" * 200, "x" * 300, "../../x", "..", ".", "a/b", "a_b", "a#b", "about", "nul", "n\0ul", "a\nb", "WEB:1", " "),
    *("a_b~c14cddc033f64b9d", "conversations.json", "$(touch x)", "a`id`", "a;id", "*", "x y", "a\u202eb", "a\u200bb"),
)


@pytest.mark.parametrize("form", ["file", "folder"])
def test_conversations_of_any_ids_are_each_imported_restored_and_forgotten(
    database: Path, tmp_path: Path, form: str
) -> None:
    first = json.loads((CHATGPT / "conversations.json").read_bytes())[0]
    path = tmp_path / "in/conversations.json"
    path.parent.mkdir()
    path.write_text(json.dumps([first | {"id": each, "conversation_id": each} for each in IDS]), encoding="utf-8")
    sessions = import_file(database, path if form == "file" else path.parent).sessions
    assert len(sessions) == len(IDS)
    assert not any(re.search(r"[^\w.:~-]", session, re.ASCII) for session in sessions)
    with open_store(database) as store:
        files = [Path(file.path) for session in sessions for file in store.restore(session, tmp_path / "out")]
        assert all(file.resolve().is_relative_to(tmp_path / "out") for file in files)
        lists = [file for file in files if file.name == "conversations.json"]
        assert sorted(json.loads(each.read_bytes())[0]["id"] for each in lists) == sorted(IDS)
        for session in sessions:
            assert store.forget(session).session_ids == (session,)
        assert store.sessions().items == ()


def test_the_list_of_an_export_is_no_file_of_a_conversation(database: Path, tmp_path: Path) -> None:
    chat = json.loads((CHATGPT / "conversations.json").read_bytes())[0]
    message = next(each["message"] for each in chat["mapping"].values() if each["message"])
    message["metadata"] = {"attachments": [{"id": "conv", "name": "conv"}]}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chat, chat | {"id": "b", "conversation_id": "b"}]), encoding="utf-8")
    for session in import_file(database, path).sessions:
        with open_store(database) as store:
            files = store.restore(session, tmp_path / "out")
        assert [len(json.loads(Path(file.path).read_bytes())) for file in files if "json" in file.path.name] == [1]


def test_a_list_with_a_byte_order_mark_is_read(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(b"\xef\xbb\xbf" + (CLAUDE_AI / "conversations.json").read_bytes())
    assert import_file(database, path).new_sessions == 2


@pytest.mark.parametrize("is_zip", [False, True])
def test_half_a_character_in_an_export_is_restored_as_it_was(database: Path, tmp_path: Path, *, is_zip: bool) -> None:
    """A title that was cut in the middle of an emoji: the escape of its first half alone is no text of JSON."""
    first, second = json.loads((CHATGPT / "conversations.json").read_bytes())
    whole = json.dumps(first | {"title": "A cat \ud83d"})
    path = tmp_path / "in/conversations.json"
    path.parent.mkdir()
    path.write_text(f"[ {whole},\n{json.dumps(second)} ]")
    import_file(database, zipped(path.parent, tmp_path / "a.zip") if is_zip else path)
    with open_store(database) as store:
        found = [store.session(each) for each in (SUM, CAT)]
        assert [each.title for each in found if each is not None] == ["A cat \ufffd", "Name for a cat"]
        (problem,) = store.diagnostics().items
        assert (problem.line, problem.severity, "surrogate" in problem.reason) == (1, "note", True)
        (restored,) = [Path(each.path) for each in store.restore(SUM, tmp_path / "out")]
    assert restored.read_text() == f"[{whole}]"
    assert len(messages(database, SUM)) > 9


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("folder", "session", "field"), [(CHATGPT, SUM, "title"), (CLAUDE_AI, GARLIC, "name")], ids=["chatgpt", "claude-ai"]
)
def test_bytes_that_are_no_utf8_are_noted_and_restored_as_they_were(
    database: Path, tmp_path: Path, folder: Path, session: str, field: str, indent: int | None
) -> None:
    first, second = json.loads((folder / "conversations.json").read_bytes())
    whole = json.dumps(first | {field: "caf@"}, indent=indent).encode().replace(b"caf@", b"caf\xe9")
    path = tmp_path / "conversations.json"
    path.write_bytes(b"[%b, %b]" % (whole, json.dumps(second).encode()))
    import_file(database, path)
    with open_store(database) as store:
        assert store.session(session).title == "caf\ufffd"
        noted = [(each.reason, each.severity) for each in store.diagnostics().items]
        assert noted == [("bytes that are not UTF-8 became U+FFFD", "note")]
        [restored] = [each.path for each in store.restore(session, tmp_path / "out") if str(each.path).endswith("json")]
    assert Path(restored).read_bytes() == b"[%b]" % whole


@pytest.mark.parametrize("is_equal", [False, True])
def test_a_different_conversation_with_a_known_id_is_reported(
    database: Path, tmp_path: Path, *, is_equal: bool
) -> None:
    first, second = json.loads((CHATGPT / "conversations.json").read_bytes())
    again = first if is_equal else first | {"title": "Another one"}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([first, second, again]))
    summary = import_file(database, path)
    assert summary.new_sessions == 2
    named = "conversations.json: conversations that are left out, since a later one has their id: 1"
    assert [problem.reason for problem in summary.problems] == ([] if is_equal else [named])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_lists_of_one_name_in_a_zip_are_both_read(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for each in json.loads((CHATGPT / "conversations.json").read_bytes()):
            archive.writestr("conversations.json", json.dumps([each]))
    assert set(import_file(database, path).sessions) == {SUM, CAT}


def test_only_escapes_of_lone_surrogates_are_replaced() -> None:
    pair, high, low = r"\ud83d\uDE00", r"\uD83d", r"\ude00"
    text = rf'["{pair}{high}a", "{low}{high}{pair}", "\\{pair}\\\\{low}\\u00e9\\ud83d{low}", "{high}{high}\n{low}"]'
    read = without_lone_surrogates(text.encode())
    assert len(read) == len(text)
    found = ["".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in each) for each in json.loads(text)]
    assert json.loads(read) == found


@pytest.mark.parametrize(("folder", "names"), [(CHATGPT, ("id", "conversation_id")), (CLAUDE_AI, ("uuid",))])
@pytest.mark.parametrize("given", [None, 7])
def test_a_conversation_without_an_id_keeps_its_session_as_it_grows(
    database: Path, tmp_path: Path, folder: Path, names: tuple[str, ...], given: object
) -> None:
    listed = json.loads((folder / "conversations.json").read_bytes())
    none = [each | dict.fromkeys(names, given) for each in listed]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(none))
    sessions = import_file(database, path).sessions
    assert len(sessions) == len(listed) == 2
    with open_store(database) as store:
        noted = store.diagnostics().items
        assert ["has no id" in each.reason for each in noted] == [True, True]
        assert [each.line for each in noted] == [1, 1]
        assert len({each.path for each in noted}) == 2
        found = [store.session(each) for each in sessions]
        assert all(
            each is not None and each.metadata[each.agent]["id_is_inferred"] and each.counts.messages for each in found
        )
        kept = {session: [words(each.message) for each in store.messages(session)] for session in sessions}
    changed = "title" if "mapping" in none[0] else "name"
    path.write_text(json.dumps([each | {changed: "Another title"} for each in none]))
    assert sorted(import_file(database, path).sessions) == sorted(sessions)
    with open_store(database) as store:
        assert {each.title for each in store.sessions().items} == {"Another title"}
        assert kept == {session: [words(each.message) for each in store.messages(session)] for session in sessions}


def test_what_is_no_conversation_in_a_list_is_reported(database: Path, tmp_path: Path) -> None:
    listed = json.loads((CHATGPT / "conversations.json").read_bytes())
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([*listed, 5, [1], None]))
    import_file(database, path)
    with open_store(database) as store:
        assert [each.reason for each in store.diagnostics().items] == ["the line is no conversation"] * 3
        assert len(store.sessions().items) == 2


def test_one_conversation_that_is_nested_too_deeply_hides_no_other(database: Path, tmp_path: Path) -> None:
    one, other = json.loads((CHATGPT / "conversations.json").read_bytes())
    one["title"] = 'a "quoted] \\ title,'
    deep = json.dumps(other | {"id": "deep", "conversation_id": "deep"})[:-1] + ', "x": ' + "[" * 10_000 + "]" * 10_000
    path = tmp_path / "conversations.json"
    path.write_text(f"[{json.dumps(one)}, {deep}}}, {json.dumps(other)}]")
    import_file(database, path)
    with open_store(database) as store:
        assert {each.id for each in store.sessions().items} == {SUM, CAT}
        assert one["title"] in {each.title for each in store.sessions().items}
        assert [each.reason for each in store.diagnostics().items] == ["the line is no conversation"]


def test_the_names_of_a_zip_are_looked_up_once_for_all_conversations(tmp_path: Path) -> None:
    _, cat = json.loads((CHATGPT / "conversations.json").read_bytes())
    path = tmp_path / "export.zip"
    zipped(CHATGPT, path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if "conversations" not in name}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([cat | {"conversation_id": f"c{n}"} for n in range(40)]))
        for name, content in files.items():
            archive.writestr(name, content)
        for number in range(5_000):
            archive.writestr(f"x{number}.png", b"")
    chatgpt = rows_agent("chatgpt")
    sources = [each for each in chatgpt.sources_at(path, tmp_path) if each.session_id is not None]
    began = time.process_time()
    lines = [b"".join(chatgpt.read_rows(each, ()).lines) for each in sources]
    assert time.process_time() - began < 0.7
    assert len(lines) == 40
    assert all(b"file:" in line or b".png" in line or b".webp" in line for line in lines)


def test_an_encrypted_export_is_refused_in_words(database: Path, tmp_path: Path) -> None:
    data = bytearray(zipped(CHATGPT, tmp_path / "export.zip").read_bytes())
    for begin, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = data.find(begin)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(begin, at + 4)
    path = tmp_path / "locked.zip"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"conversations.json is encrypted: unpack the zip with its password"):
        import_file(database, path)


def test_conversations_with_equal_message_names_keep_their_messages(database: Path, tmp_path: Path) -> None:
    def conversation(name: str, text: str) -> dict[str, Any]:
        said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}}
        return {"title": "t", "id": name, "mapping": {"m1": {"parent": None, "message": said}}, "current_node": "m1"}

    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation("one", "a walnut"), conversation("two", "a cedar")]))
    import_file(database, path)
    found = {name: [words(each) for each in messages(database, f"chatgpt:{name}")] for name in ("one", "two")}
    assert found == {"one": ["a walnut"], "two": ["a cedar"]}
    assert [each.id for each in messages(database, "chatgpt:one")] == ["one.m1"]


def test_a_time_out_of_range_is_noted(database: Path, tmp_path: Path) -> None:
    listed = json.loads((CHATGPT / "conversations.json").read_bytes())[1:]
    nodes = (each for each in listed[0]["mapping"].values() if each.get("message"))
    node = next(each for each in nodes if each["message"]["author"]["role"] == "user")
    listed[0]["create_time"] = node["message"]["create_time"] = 1e300
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(listed))
    import_file(database, path)
    with open_store(database) as store:
        noted = {(each.reason, each.severity) for each in store.diagnostics().items}
        places = {each.json_path for each in store.diagnostics().items}
    assert places == {"$.create_time", f"$.mapping.{node['id']}.message.create_time"}
    assert {severity for _, severity in noted} == {"note"}
    assert all(reason.startswith("a time out of range is left out") for reason, _ in noted)


@pytest.mark.parametrize("is_equal", [False, True])
def test_messages_of_one_uuid_are_both_read_unless_they_are_the_same(
    database: Path, tmp_path: Path, *, is_equal: bool
) -> None:
    [listed] = json.loads((CLAUDE_AI / "conversations.json").read_bytes())[1:]
    asked = listed["chat_messages"][0]
    again = asked if is_equal else asked | {"text": "And a walnut?", "content": []}
    listed["chat_messages"].append(again)
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([listed]))
    import_file(database, path)
    said = [words(message) for message in messages(database, WORD)]
    assert said.count(asked["text"]) == 1
    assert said.count("And a walnut?") == (0 if is_equal else 1)
    with open_store(database) as store:
        place = f"$.chat_messages[{len(listed['chat_messages']) - 1}].uuid"
        assert [each.json_path for each in store.diagnostics().items] == ([] if is_equal else [place])


def test_what_is_of_another_kind_is_named_with_its_place(database: Path, tmp_path: Path) -> None:
    sums, cat = json.loads((CHATGPT / "conversations.json").read_bytes())
    nodes = [name for name, node in sums["mapping"].items() if node.get("message")]
    sums["title"] = {"a": "title"}
    sums["mapping"]["z"] = "words"
    sums["mapping"][nodes[0]]["message"]["content"] = "content"
    sums["mapping"][nodes[1]]["message"]["content"]["parts"] = {"0": "part"}
    sums["mapping"][nodes[2]]["message"] = ["message"]
    cat["mapping"] = [*cat["mapping"].values()]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([sums, cat]))
    import_file(database, path)
    words_of, list_of_messages = json.loads((CLAUDE_AI / "conversations.json").read_bytes())
    words_of |= {"name": ["name"], "chat_messages": ["words", 5, None, {"uuid": "q", "text": {"a": 1}, "content": "x"}]}
    list_of_messages["chat_messages"] = {"0": list_of_messages["chat_messages"][0]}
    path = tmp_path / "other" / "conversations.json"
    path.parent.mkdir()
    path.write_text(json.dumps([words_of, list_of_messages]))
    import_file(database, path)
    with open_store(database) as store:
        named = store.diagnostics().items
    found = {(each.json_path, each.reason.partition(", at ")[0], each.severity) for each in named}
    reason = "{} where {} belongs: it is not shown"
    assert found == {
        (place, reason.format(*kinds), "error")
        for place, *kinds in (
            ("$.title", "an object", "a text"),
            ("$.mapping.z", "a text", "an object"),
            (f"$.mapping.{nodes[0]}.message.content", "a text", "an object"),
            (f"$.mapping.{nodes[1]}.message.content.parts", "an object", "a list"),
            (f"$.mapping.{nodes[2]}.message", "a list", "an object"),
            ("$.mapping", "a list", "an object"),
            ("$.name", "a list", "a text"),
            ("$.chat_messages[0]", "a text", "an object"),
            ("$.chat_messages[1]", "a number", "an object"),
            ("$.chat_messages[3].text", "an object", "a text"),
            ("$.chat_messages[3].content", "a text", "a list"),
            ("$.chat_messages", "an object", "a list"),
        )
    }
