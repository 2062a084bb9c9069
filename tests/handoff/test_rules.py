"""What a hand-over carries and reports, for sessions with everything that another agent cannot hold as it is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from support.handed_over import make_databases, own_messages, said, stored
from support.provider_messages import PNG
from turnlog import agents, handoff
from turnlog.agents.base import RowAgent
from turnlog.agents.claude_code.handoff import project_folder
from turnlog.errors import HandoffError
from turnlog.handoff import HandoffPlan, Window, targets
from turnlog.model import FilePart, Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.base import ProviderData
from turnlog.model.codec import to_json
from turnlog.model.parts import STATE_OF_STATUS, ResultStatus
from turnlog.runs.states import session_states
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.sync.importing import import_file
from turnlog.sync.syncer import sync

ID = "demo:talk"
LOG_TARGETS = [target.name for target in targets() if not isinstance(agents.agent(target.name), RowAgent)]
"""The agents that write logs, and no rows of a database."""

DATA = Path(__file__).parent.parent / "data"
AT = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.db", create=True) as opened:
        yield opened


def talk(store: Store, *messages: Message) -> str:
    store.save_messages(ID, list(messages))
    return ID


def prompt(number: int, text: str = "") -> Message:
    return Message(
        id=f"u{number}",
        role="user",
        origin=Origin.PROMPT,
        created_at=AT + timedelta(minutes=number),
        parts=(TextPart(text=text or f"Prompt {number}"),),
    )


def answer(name: str, *parts: Part) -> Message:
    return Message(id=name, role="assistant", parts=parts, model="some-model", created_at=AT)


def call(name: str, *content: Part, status: ResultStatus | None = "success", tool: str = "Frobnicate") -> ToolCallPart:
    results = () if status is None else (ToolResult(id=f"{name}:r", status=status, content=content),)
    state = STATE_OF_STATUS[status] if status else ToolCallPart(tool_call_id="", tool_name="").state
    return ToolCallPart(tool_call_id=name, tool_name=tool, input=to_json({"of": name}), results=results, state=state)


def planned(store: Store, tmp_path: Path, target: str = "codex", session_id: str = ID, **options: Any) -> HandoffPlan:
    return handoff.plan(store, session_id, target, folder=tmp_path, home=tmp_path / "home", **options)


def written(plan: HandoffPlan) -> list[dict[str, Any]]:
    plan.write()
    return [json.loads(line) for line in plan.paths[-1].read_bytes().splitlines()]


def text_of(plan: HandoffPlan) -> str:
    plan.write()
    return plan.paths[-1].read_text()


def kinds(plan: HandoffPlan) -> list[str]:
    return [loss.kind for loss in plan.losses]


def test_eight_calls_in_a_row_stay_eight_steps(store: Store, tmp_path: Path) -> None:
    steps = [answer(f"a{number}", call(f"c{number}", TextPart(text="ok"))) for number in range(8)]
    talk(store, prompt(1), *steps)
    lines = written(planned(store, tmp_path))
    items = [line["payload"]["type"] for line in lines if line["type"] == "response_item"]
    assert items == ["message", *["function_call", "function_call_output"] * 8]
    records = written(planned(store, tmp_path, "claude-code"))
    ids = [record["message"]["id"] for record in records if record["type"] == "assistant"]
    assert len(set(ids)) == 8


def test_reasoning_travels_only_as_text_and_only_where_it_is_wanted(store: Store, tmp_path: Path) -> None:
    proof = ProviderData(name="anthropic", opaque={"signature": "c2VhbGVk"})
    thought = ReasoningPart(text="Carefully.", provider=proof)
    talk(store, prompt(1), answer("a", thought, TextPart(text="Done.")))
    for target in ("claude-code", "codex", "gemini-cli"):
        plan = planned(store, tmp_path, target)
        data = "\n".join(map(json.dumps, written(plan)))
        assert "Carefully" not in data
        assert "c2VhbGVk" not in data
        assert kinds(plan) == ["reasoning"]
    plan = planned(store, tmp_path, reasoning="text")
    assert kinds(plan) == ["reasoning-as-text"]
    data = json.dumps(written(plan))
    assert "Carefully." in data
    assert "c2VhbGVk" not in data


@pytest.mark.parametrize(("target", "words"), [("codex", "aborted"), ("gemini-cli", "[Operation Cancelled]")])
def test_a_call_without_a_result_is_closed_in_the_words_of_the_target(
    target: str, words: str, store: Store, tmp_path: Path
) -> None:
    talk(store, prompt(1), answer("a", call("c", status=None)))
    plan = planned(store, tmp_path, target)
    assert kinds(plan) == ["unanswered"]
    [_, message] = plan.conversation.messages
    [part] = message.parts
    assert isinstance(part, ToolCallPart)
    assert [(result.status, result.output_text.startswith(words)) for result in part.results] == [("aborted", True)]


def test_a_text_after_a_call_is_put_before_it_where_the_agent_sends_it_so(store: Store, tmp_path: Path) -> None:
    talk(store, prompt(1), answer("a", TextPart(text="One."), call("c", TextPart(text="ok")), TextPart(text="Two.")))
    for target, texts in (("claude-code", ["One.", "Two."]), ("gemini-cli", ["One.\n\nTwo."])):
        plan = planned(store, tmp_path, target)
        assert kinds(plan) == ["order"]
        parts = plan.conversation.messages[1].parts
        assert [part.text for part in parts if isinstance(part, TextPart)] == texts
        assert isinstance(parts[-1], ToolCallPart)
    assert kinds(planned(store, tmp_path, "codex")) == []


def test_an_input_of_several_lines_is_one_line_of_a_log(store: Store, tmp_path: Path) -> None:
    given = ToolCallPart(tool_call_id="c", tool_name="Run", input=Raw(b'{\n  "n": 1.50,\r\n  "t": "a\\nb"\n}'))
    talk(store, prompt(1), answer("a", given))
    for target in LOG_TARGETS:
        text = text_of(planned(store, tmp_path, target))
        assert all(json.loads(line) for line in text.splitlines()), target
        assert "1.50" in text, target


@pytest.mark.parametrize(
    ("number", "is_rounded"),
    [
        ("9007199254740993", True),
        ("-12345678901234567890", True),
        ("1e400", True),
        ("1" + "0" * 400, True),
        ("9007199254740992", False),
        ("1e308", False),
        ("0.12345678901234567", False),
        ('"12345678901234567890"', False),
    ],
)
def test_numbers_that_javascript_rounds_are_reported_for_its_agents(
    number: str, is_rounded: bool, store: Store, tmp_path: Path
) -> None:
    given = ToolCallPart(tool_call_id="c", tool_name="Run", input=Raw(f'{{"id":{number}}}'.encode()))
    talk(store, prompt(1), answer("a", given))
    assert ("number" in kinds(planned(store, tmp_path, "claude-code"))) == is_rounded
    assert "number" not in kinds(planned(store, tmp_path, "codex"))


def test_a_subagents_session_is_a_session_of_its_own_in_the_next_agent(store: Store, tmp_path: Path) -> None:
    asked = msgspec.structs.replace(prompt(1), origin=Origin.SUBAGENT_PROMPT)
    talk(store, asked, answer("a", TextPart(text="Done.")))
    for target in LOG_TARGETS:
        plan = planned(store, tmp_path, target)
        plan.write()
        sync(tmp_path / "store.db", roots=[tmp_path / "home"])
        links = store.session(plan.session_id).relationships
        assert [(link.kind, link.parent_session_id) for link in links] == [("continuation", ID)], target


def test_an_answer_without_a_prompt_gets_one_and_reports_no_loss(store: Store, tmp_path: Path) -> None:
    talk(store, answer("a", TextPart(text="Hello.")))
    plan = planned(store, tmp_path)
    assert [summary.sentence for summary in plan.summary] == ["1 message has words before it"]
    assert [words for _, words in said(plan)] == [["(continued)"], ["Hello."]]


@pytest.mark.parametrize("target", ["claude-code", "codex", "gemini-cli"])
def test_a_full_disk_leaves_neither_a_file_nor_a_folder(
    target: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def linked(source: str, place: Path, link: Callable[[str, Path], None] = os.link) -> None:
        # Gemini CLI's log has a file before it, which is written.
        if place.suffix == ".jsonl":
            raise OSError(errno.ENOSPC, "No space left on device")
        link(source, place)

    talk(store, prompt(1), answer("a", TextPart(text="Hello.")))
    plan = planned(store, tmp_path, target)
    monkeypatch.setattr(os, "link", linked)
    with pytest.raises(HandoffError, match=r"nothing was written: .* \(No space left on device\)"):
        plan.write()
    assert not (tmp_path / "home").exists()


def test_statuses_and_tools_that_nobody_knows_are_read_again_as_they_were(store: Store, tmp_path: Path) -> None:
    statuses: tuple[ResultStatus, ...] = ("success", "error", "aborted", "denied")
    calls = [call(f"c{status}", TextPart(text="out"), status=status) for status in statuses]
    talk(store, prompt(1), answer("a", TextPart(text="Four."), *calls))
    home = tmp_path / "home"
    make_databases(home)
    plans = [planned(store, tmp_path, target) for target in ("claude-code", "codex", "gemini-cli", "opencode")]
    for plan in plans:
        plan.write()
    sync(tmp_path / "store.db", roots=[home])
    for plan in plans:
        assert stored(store, plan.session_id) == said(plan)
        assert [each[2] for each in said(plan)[1][1][1:]] == [[status] for status in statuses]


def test_claude_code_is_given_no_model_of_another_agent_to_go_on_with(store: Store, tmp_path: Path) -> None:
    talk(store, prompt(1), answer("a", TextPart(text="Hello.")))
    home = tmp_path / "home"
    plan = planned(store, tmp_path, "claude-code")
    assert [line["message"]["model"] for line in written(plan) if line["type"] == "assistant"] == ["unknown"]
    sync(tmp_path / "store.db", roots=[home])
    assert [placed.message.model for placed in store.messages(plan.session_id)] == [None, "some-model"]


def test_a_text_that_no_model_could_take_is_cut_and_reported(store: Store, tmp_path: Path) -> None:
    talk(store, prompt(1), answer("a", call("c", TextPart(text="x" * 3_000_000))))
    plan = planned(store, tmp_path)
    assert kinds(plan) == ["output-cut"]
    assert plan.new.size < 450_000
    assert "the rest of 3,000,000 bytes was left out" in plan.paths[-1].name + json.dumps(written(plan))


@pytest.mark.parametrize("text", ["/compact", "  /home/dev/notes.txt is empty, why?", "? help", "<session_context>x"])
def test_a_prompt_that_gemini_would_take_for_a_command_has_words_before_it(
    text: str, store: Store, tmp_path: Path
) -> None:
    """Gemini CLI 0.61 keeps such a prompt in its log and leaves it out of what it sends."""
    session_id = talk(store, prompt(1, "See a/b"), answer("a", TextPart(text="Yes")), prompt(2, text))
    for target, words in (("gemini-cli", ["The user wrote: ", text]), ("codex", [text])):
        planned = handoff.plan(store, session_id, target, folder=tmp_path, home=tmp_path / target)
        first, *_, last = planned.conversation.messages
        assert [part.text for part in first.parts if isinstance(part, TextPart)] == ["See a/b"]
        assert [part.text for part in last.parts if isinstance(part, TextPart)] == words
        reported = [loss.message_id for loss in planned.losses if loss.kind == "introduced"]
        assert reported == (["u2"] if len(words) > 1 else [])


def test_an_image_that_is_gone_becomes_a_note(store: Store, tmp_path: Path) -> None:
    gone = FilePart(media_type="image/png", url="file:///gone.png")
    elsewhere = FilePart(media_type="image/png", url="https://example.com/there.png")
    parts = (TextPart(text="See"), gone, elsewhere)
    talk(store, Message(id="u", role="user", origin=Origin.PROMPT, parts=parts), answer("a", TextPart(text="I see.")))
    plan = planned(store, tmp_path)
    assert kinds(plan) == ["file", "file"]
    [[_, texts], _] = said(plan)
    assert texts[0] == "See"
    assert texts[1].startswith("[image unavailable")
    assert texts[2] == "[image/png at https://example.com/there.png]"


def test_an_image_whose_end_is_missing_becomes_a_note_and_is_reported(store: Store, tmp_path: Path) -> None:
    whole = PNG
    pictures = (FilePart(media_type="image/png", data=whole), FilePart(media_type="image/png", data=whole[:-1]))
    message = Message(id="u", role="user", origin=Origin.PROMPT, parts=(TextPart(text="See"), *pictures))
    talk(store, message, answer("a", TextPart(text="I see.")))
    plan = planned(store, tmp_path)
    assert [(loss.kind, loss.detail) for loss in plan.losses] == [
        ("file", "image/png: the image is damaged: its end is missing")
    ]
    [_, kept, note] = plan.conversation.messages[0].parts
    assert isinstance(kept, FilePart)
    assert kept.data == whole
    assert isinstance(note, TextPart)
    assert note.text.startswith("[image unavailable: the image is damaged")


def test_attachments_of_the_user_are_carried_those_of_the_agent_not(store: Store, tmp_path: Path) -> None:
    attached = TextPart(text="Alpha", metadata={"demo": {"synthetic": True, "attached": None}})
    added = TextPart(text="It is noon", metadata={"demo": {"synthetic": True}})
    message = Message(id="u", role="user", origin=Origin.PROMPT, parts=(TextPart(text="Read it"), attached, added))
    talk(store, message, answer("a", TextPart(text="Done.")))
    plan = planned(store, tmp_path)
    assert said(plan)[0] == ("user", ["Read it", "Alpha"])
    assert kinds(plan) == ["injected"]


def test_documents_in_a_prompt_to_claude_ai_are_carried(tmp_path: Path) -> None:
    folder = DATA / "chat_exports/handwritten/claude_ai/data-2026-06"
    sessions = import_file(tmp_path / "store.db", folder).sessions
    with open_store(tmp_path / "store.db") as store:
        plans = [planned(store, tmp_path, session_id=each) for each in sessions]
    prompts = [texts for plan in plans for role, texts in said(plan) if role == "user"]
    assert sum("Bed 1: sunny, dry." in texts for texts in prompts) == 1


def test_a_session_without_messages_is_refused(store: Store, tmp_path: Path) -> None:
    store.save_session(ID, title="Nothing was said")
    with pytest.raises(HandoffError, match="has no messages that could be handed over"):
        planned(store, tmp_path)


def test_a_session_that_is_there_already_is_never_replaced(store: Store, tmp_path: Path) -> None:
    talk(store, prompt(1), answer("a", TextPart(text="Hello.")))
    plan = planned(store, tmp_path)
    plan.write()
    before = plan.paths[-1].read_bytes()
    with pytest.raises(HandoffError, match="nothing was written: there is a session at"):
        plan.write()
    assert plan.paths[-1].read_bytes() == before


@pytest.mark.parametrize("target", sorted(each.name for each in targets()))
def test_a_home_that_cannot_be_written_is_reported_and_stays_as_it_is(
    target: str, store: Store, tmp_path: Path
) -> None:
    talk(store, prompt(1), answer("a", call("c", TextPart(text="out"))))
    (tmp_path / "home").write_text("a file is in the way")
    plan = planned(store, tmp_path, target)
    with pytest.raises(HandoffError, match=r"nothing was written: .* cannot be written|there is no database"):
        plan.write()
    assert (tmp_path / "home").read_text() == "a file is in the way"
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("store.db")] == ["home"]


@pytest.mark.parametrize("target", ["opencode", "kilo"])
def test_a_database_that_does_not_take_the_last_row_has_none_of_the_others(
    target: str, store: Store, tmp_path: Path
) -> None:
    talk(store, prompt(1), answer("a", call("c", TextPart(text="out"))))
    make_databases(tmp_path / "home")
    plan = planned(store, tmp_path, target)
    with closing(sqlite3.connect(plan.paths[0])) as connection, connection:
        connection.execute(
            """CREATE TRIGGER full BEFORE INSERT ON part WHEN NEW.data LIKE '%"tool"%'
            BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"""
        )
        with pytest.raises(HandoffError, match=r"nothing was written: .* cannot be written \(the disk is full\)"):
            plan.write()
        for table in ("session", "message", "part"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_running_session_and_damaged_records_are_reported(tmp_path: Path) -> None:
    home = tmp_path / ".claude"
    shutil.copytree(LOGS / "claude-code", home)
    name = "11111111-1111-4111-8111-111111111111"
    log = next(home.rglob(f"{name}.jsonl"))
    record = {
        **{"type": "user", "uuid": "u-new", "parentUuid": None, "sessionId": name, "version": "2.1.329"},
        **{"timestamp": datetime.now(UTC).isoformat(), "message": {"role": "user", "content": "Are you there?"}},
    }
    with log.open("a") as file:
        file.write('{"type":"user","message":{"role"\n' + json.dumps(record) + "\n")
    sync(tmp_path / "store.db", roots=[home])
    with open_store(tmp_path / "store.db") as store:
        plan = planned(store, tmp_path, session_id=f"claude-code:{name}")
    assert plan.notes == (
        "Left out: 2 rewound turns; --whole carries them",
        "the session is still running: later messages are not carried",
        "1 record of its log could not be read completely: their content may be missing",
    )
    assert "Are you there?" in json.dumps(written(plan))


def test_damaged_records_of_an_imported_log_are_reported(tmp_path: Path) -> None:
    log = next((LOGS / "claude-code").rglob("11111111-1111-4111-8111-111111111111.jsonl"))
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(log.read_bytes() + b'{"type":"user","message":{"role"\n')
    [session_id] = import_file(tmp_path / "store.db", copy).sessions
    with open_store(tmp_path / "store.db") as store:
        plan = planned(store, tmp_path, session_id=session_id)
    assert plan.notes[-1] == "1 record of its log could not be read completely: their content may be missing"


def test_a_handed_over_session_can_be_handed_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    sync(first, roots=[LOGS / "claude-code"])
    origin, home = "claude-code:11111111-1111-4111-8111-111111111111", tmp_path / "home"
    with open_store(first) as store:
        plan = planned(store, tmp_path, session_id=origin)
        plan.write()
    sync(second, roots=[home])
    with open_store(second) as store:
        again = planned(store, tmp_path, "gemini-cli", session_id=plan.session_id)
        assert again.conversation.messages
        assert said(again) == said(plan)
        again.write()
        assert store.session(plan.session_id).relationships[0].parent_session_id == origin
        assert own_messages(store, plan.session_id) == []
    sync(second, roots=[home, LOGS / "claude-code"])
    with open_store(second) as store:
        assert [each.id for each in store.children(origin) if "codex" in each.id] == [plan.session_id]
        assert [each.id for each in store.children(plan.session_id)] == [again.session_id]


def test_a_folder_with_a_long_name_has_the_log_folder_of_claude_code() -> None:
    """As 2.1.332 named it."""
    folder = Path("/tmp/cl/home", "long-folder-name_" * 7, "another.folder " * 7 + "another.folder")
    assert project_folder(folder).endswith("-another-folder-another-jomy7u")
    assert project_folder(Path("/home/dev/old0.2.126/proj")) == "-home-dev-old0-2-126-proj"


@pytest.mark.parametrize("target", sorted(each.name for each in targets()))
def test_an_unfinished_turn_handed_over_runs_in_no_agent(target: str, store: Store, tmp_path: Path) -> None:
    talk(store, prompt(1), answer("a", call("c", status=None)))
    home = tmp_path / "home"
    make_databases(home)
    plan = planned(store, tmp_path, target)
    plan.write()
    sync(tmp_path / "store.db", roots=[home])
    state = session_states(store, [plan.session_id], datetime.now(UTC))[plan.session_id]
    assert (state.state, state.evidence, state.detail) == ("done", "turn-ended", "handed-over")
    if target == "codex":
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]}
        line = {"timestamp": datetime.now(UTC).isoformat(), "type": "response_item", "payload": item}
        with plan.paths[-1].open("a") as log:
            log.write(json.dumps(line) + "\n")
        sync(tmp_path / "store.db", roots=[home])
        assert session_states(store, [plan.session_id], datetime.now(UTC))[plan.session_id].state == "running"


# -- windows


def long_talk(store: Store) -> None:
    turns = [(prompt(number), answer(f"a{number}", TextPart(text="y" * 400))) for number in range(4)]
    talk(store, *[message for turn in turns for message in turn])


def prompts(plan: HandoffPlan) -> list[Any]:
    return [parts[0] for role, parts in said(plan) if role == "user"]


def test_a_window_begins_and_ends_at_messages(store: Store, tmp_path: Path) -> None:
    long_talk(store)
    plan = planned(store, tmp_path, window=Window(since="a1", until="u2"))
    assert prompts(plan) == ["Prompt 1", "Prompt 2"]
    assert plan.notes == ("3 messages after it are left out", "2 messages before its turn are left out")
    with pytest.raises(HandoffError, match="no message 'b7' in this part of the session"):
        planned(store, tmp_path, window=Window(until="b7"))


def test_a_window_in_tokens_leaves_out_turns_from_the_front(store: Store, tmp_path: Path) -> None:
    long_talk(store)
    plan = planned(store, tmp_path, window=Window(tokens=220))
    assert prompts(plan) == ["Prompt 2", "Prompt 3"]
    assert plan.tokens <= 220
    assert plan.notes == ("the first 2 turns are left out, to fit into 220 tokens",)
    assert planned(store, tmp_path, window=Window(tokens=330)).notes == (
        "the first turn is left out, to fit into 330 tokens",
    )


def test_a_turn_that_alone_is_too_long_keeps_its_prompt_and_its_last_steps(store: Store, tmp_path: Path) -> None:
    steps = [answer(f"a{number}", TextPart(text=f"Step {number} " + "z" * 400)) for number in range(6)]
    talk(store, prompt(1), *steps)
    plan = planned(store, tmp_path, window=Window(tokens=250))
    assert [message.id for message in plan.conversation.messages] == ["u1", "a4", "a5"]
    assert plan.notes == ("only the last turn is carried, without its first 4 steps, to fit into 250 tokens",)
    with pytest.raises(HandoffError, match="the last turn does not fit into 50 tokens"):
        planned(store, tmp_path, window=Window(tokens=50))


def test_the_whole_session_has_what_was_compacted(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    sync(path, roots=[Path(__file__).parents[1] / "data/claude_code/scenarios/compact"])
    with open_store(path) as store:
        [session] = [each for each in store.sessions(limit=50).items if each.counts.messages > 8][:1]
        active = planned(store, tmp_path, session_id=session.id)
        whole = planned(store, tmp_path, session_id=session.id, window=Window(whole=True))
        cut = planned(store, tmp_path, session_id=session.id, window=Window(tokens=active.tokens - 1))
        last = active.conversation.messages[-1].id
        later = planned(store, tmp_path, session_id=session.id, window=Window(since=last))
        until = planned(store, tmp_path, session_id=session.id, window=Window(until=last))
    assert whole.notes == ()
    assert active.notes == ("Left out: 1 turn before the compaction; --whole carries it",)
    assert whole.turns == active.turns + 1
    assert cut.notes[0] == active.notes[0]
    assert until.notes == active.notes
    assert ["before its turn" in note for note in later.notes] == [True]
    assert "to fit into" in cut.notes[1]
    origins = [message.origin for message in active.conversation.messages]
    assert Origin.COMPACTION in origins
    assert whole.messages > active.messages
    assert Origin.COMPACTION not in [message.origin for message in whole.conversation.messages]
