"""A log that was cut off or written anew: what it holds now is the session, what it held before stays beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

import msgspec
import pytest

from support import codex_files
from support.claude_files import SESSION, Log, call, lines, text
from turnlog.model import Fate, Membership, Message, ReasoningPart, SessionCounts, TextPart, ToolCallPart
from turnlog.model.parts import Part
from turnlog.store import open_store
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

TIME = codex_files.TIME
LEFT = {Fate.SUPERSEDED, Fate.REWOUND}


class Case(NamedTuple):
    """A session of an agent, and its log's bytes one after the other."""

    path: str
    session_id: str
    first: bytes
    then: bytes


def claude(first: bytes, then: bytes) -> Case:
    return Case(f".claude/projects/-work/{SESSION}.jsonl", f"claude-code:{SESSION}", first, then)


def codex(first: bytes, then: bytes) -> Case:
    thread = codex_files.THREAD
    path = f".codex/sessions/2026/11/21/rollout-2026-11-21T10-00-00-{thread}.jsonl"
    return Case(path, f"codex:{thread}", first, then)


def claude_turns(*prompts: str, log: Log | None = None) -> bytes:
    log = log or Log()
    return b"".join(_claude_turn(log, prompt) for prompt in prompts)


def _claude_turn(log: Log, prompt: str) -> bytes:
    """The same records wherever it is said, but for their parents."""
    asked, answered = (
        dict[str, Any]({"uuid": str(uuid5(NAMESPACE_OID, f"{role} {prompt}")), "timestamp": TIME}) for role in "ua"
    )
    answer = text(f"{prompt}, done")
    return lines(log.user(prompt, **asked), log.assistant(f"answer to {prompt}", answer, **answered))


def claude_branch() -> bytes:
    """The second prompt was taken back, and another one sent."""
    log = Log()
    first = claude_turns("one", log=log)
    before = log.last
    left = claude_turns("two", log=log)
    log.last = before
    return first + left + claude_turns("another", log=log)


def claude_compacted() -> bytes:
    log = Log()
    first = claude_turns("one", "two", log=log)
    log.last = None
    boundary = log.record("system", subtype="compact_boundary", content="Conversation compacted", isMeta=False)
    summary = log.user("This session is being continued", uuid=str(uuid5(NAMESPACE_OID, "s")), isCompactSummary=True)
    return first + lines(boundary, summary) + claude_turns("three", log=log)


def codex_turns(*prompts: str) -> bytes:
    turns = (codex_files.prompt(prompt) + codex_files.answer(f"{prompt}, done") for prompt in prompts)
    return codex_files.meta() + b"".join(turns)


def codex_compacted() -> bytes:
    summary = codex_files.line("compacted", {"message": "what happened so far"})
    return codex_turns("one", "two") + summary + codex_files.prompt("three") + codex_files.answer("three, done")


LONG = [f"a prompt of some length, number {number}" for number in range(12)]
CASES = {
    "claude, other content": claude(claude_turns("one", "two"), claude_turns("x", log=Log(cwd="/elsewhere"))),
    "claude, cut off": claude(claude_turns(*LONG), claude_turns(*LONG[:3])),
    "claude, cut off and gone on": claude(claude_turns(*LONG), claude_turns(*LONG[:3], "elsewhere", *LONG[9:])),
    "claude, without its beginning": claude(claude_turns(*LONG), claude_turns(*LONG).split(b"\n", 6)[-1]),
    "claude, empty": claude(claude_turns("one"), b""),
    "claude, longer": claude(claude_turns("one"), claude_turns("x", "y", "z")),
    "claude, branches": claude(claude_branch(), claude_turns("one", "two", "three")),
    "claude, compacted": claude(claude_compacted(), claude_turns("one", "two", "three")),
    "claude, not compacted before": claude(claude_turns("one", "two", "three", "four"), claude_compacted()),
    "codex, other content": codex(codex_turns("one", "two"), codex_turns("three")),
    "codex, cut off": codex(codex_turns(*LONG), codex_turns(*LONG[:3])),
    "codex, cut off and gone on": codex(codex_turns(*LONG), codex_turns(*LONG[:3], "elsewhere", *LONG[9:])),
    "codex, empty": codex(codex_turns("one"), b""),
    "codex, longer": codex(codex_turns("one"), codex_turns("x", "y", "z")),
    "codex, compacted": codex(codex_compacted(), codex_turns("one", "two", "four")),
    "codex, not compacted before": codex(codex_turns("one", "two", "three", "four"), codex_compacted()),
}


def history(store: Path, session_id: str) -> dict[str, tuple[Message, Membership]]:
    """Message id -> the message and its place, of a session."""
    with open_store(store) as opened:
        placed = opened.messages(session_id, limit=1000)
    return {each.message.id: (each.message, each.membership) for each in placed}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def write(home: Path, case: Case) -> Callable[[bytes], int]:
    log = home / case.path
    log.parent.mkdir(parents=True)
    return log.write_bytes


def check(store: Path, case: Case, fresh: Path, before: dict[str, tuple[Message, Membership]]) -> None:
    """The store holds what one does that has read only the new file; and everything before, not active."""
    found, new = history(store, case.session_id), history(fresh, case.session_id) if case.then else {}
    for message_id, expected in new.items():
        assert found[message_id] == expected
    assert found.keys() == before.keys() | new.keys()
    for message_id in before.keys() - new.keys():
        message, place = found[message_id]
        assert message == before[message_id][0]
        assert place.fate in LEFT


def test_a_rewritten_log_reads_like_the_new_file(case: Case, write: Callable[[bytes], int], tmp_path: Path) -> None:
    """C8: and the messages that are no longer in it are kept, as left ones."""
    store, fresh = tmp_path / "store.db", tmp_path / "fresh.db"
    write(case.first)
    sync(store)
    before = history(store, case.session_id)
    assert {place.fate for _, place in before.values()} & {Fate.ACTIVE}
    write(case.then)
    sync(store)
    if case.then:
        sync(fresh)
    check(store, case, fresh, before)
    rebuild(store)
    check(store, case, fresh, before)


def test_what_comes_back_is_active_again(case: Case, write: Callable[[bytes], int], tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    write(case.first)
    sync(store)
    before = history(store, case.session_id)
    write(case.then)
    sync(store)
    write(case.first)
    sync(store)
    found = history(store, case.session_id)
    assert {message_id: found[message_id] for message_id in before} == before
    assert all(place.fate in LEFT for message_id, (_, place) in found.items() if message_id not in before)


def edited(asked: str, answered: str, output: str) -> bytes:
    """One turn with a call, the same records whatever they say."""
    log = Log()
    ids = [str(uuid5(NAMESPACE_OID, name)) for name in ("asked", "called", "returned", "answered")]
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}
    return lines(
        log.user(asked, uuid=ids[0], timestamp=TIME),
        log.assistant("calls", call, uuid=ids[1], timestamp=TIME),
        log.user([result], uuid=ids[2], timestamp=TIME),
        log.assistant("answers", text(answered), uuid=ids[3], timestamp=TIME),
    )


def words(message: Message) -> list[str]:
    calls = [part.output_text for part in message.parts if isinstance(part, ToolCallPart)]
    return calls + [part.text for part in message.parts if isinstance(part, TextPart)]


EDITS = {
    "shorter": ("Delete all", "No", "a"),
    "longer": ("Please delete everything that is there", "Yes, all of it is gone now", "a much longer output"),
    "a piece": ("Delete it all", "It is done", "file.txt and"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_an_edited_record_says_what_the_log_says_now(edit: tuple[str, str, str], home: Path, tmp_path: Path) -> None:
    """C8: records keep their ids when a log is edited in place. What they said before is kept, superseded."""
    before = ("Delete it all, please", "It is done, Sir", "file.txt and more")
    case = claude(edited(*before), edited(*edit))
    log, store, fresh = home / case.path, tmp_path / "store.db", tmp_path / "fresh.db"
    log.parent.mkdir(parents=True)
    log.write_bytes(case.first)
    sync(store)
    old = history(store, case.session_id)
    log.write_bytes(case.then)
    sync(store)
    sync(fresh)
    for _ in range(2):
        found, new = history(store, case.session_id), history(fresh, case.session_id)
        assert {message_id: found.pop(message_id) for message_id in new} == new
        assert [words(message) for message, _ in found.values()] == [words(message) for message, _ in old.values()]
        assert [(place.fate, place.fate_cause) for _, place in found.values()] == [
            (Fate.SUPERSEDED, message_id) for message_id in old
        ]
        with open_store(store) as opened, open_store(fresh) as other:
            assert opened.session(case.session_id).usage == other.session(case.session_id).usage
        rebuild(store)
    log.write_bytes(case.first)
    sync(store)
    back = history(store, case.session_id)
    assert {message_id: back[message_id] for message_id in old} == old
    assert {place.fate for message_id, (_, place) in back.items() if message_id not in old} == {Fate.SUPERSEDED}


THINKING = {"type": "thinking", "thinking": "First the list.", "signature": "c2ln"}
BLOCKS = {
    "the first is gone": ([THINKING, text("Done.")], [text("Done.")]),
    "in another order": ([text("Done."), THINKING], [THINKING, text("Done.")]),
    "a new first": ([text("Done.")], [THINKING, text("Done.")]),
    "a new first of the same kind": ([text("All is done.")], [text("Look."), text("All is done.")]),
    "two of a kind in another order": ([text("Look."), text("All is done.")], [text("All is done."), text("Look.")]),
}
"""The blocks of an answer before and after: those behind others that are gone or new have other numbers."""


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=list(BLOCKS))
def test_a_block_with_another_number_is_in_its_message_once(
    blocks: tuple[list[dict[str, Any]], list[dict[str, Any]]], home: Path, tmp_path: Path
) -> None:
    """C8: what a rewrite only leaves out stays in the message."""
    case = claude(*(lines(Log().user("Go on"), Log().assistant("answer", *each, uuid="answered")) for each in blocks))
    log, store = home / case.path, tmp_path / "store.db"
    log.parent.mkdir(parents=True)
    for data in (case.first, case.then):
        log.write_bytes(data)
        sync(store)
    for _ in range(2):
        found = history(store, case.session_id)
        [answer] = [message for message, _ in found.values() if message.role == "assistant"]
        said = [part.text for part in answer.parts if isinstance(part, TextPart | ReasoningPart)]
        assert Counter(said) == Counter(each.get("text") or each["thinking"] for each in max(blocks, key=len))
        rebuild(store)


LOOK, DONE = text("Look."), text("Look. All is done.")
ONE, TWO = call("toolu_1", command="ls"), call("toolu_2", command="pwd")
LIVES: dict[str, tuple[list[list[dict[str, Any]]], list[str]]] = {
    "edited where another stays beside it": (
        [[THINKING, DONE], [DONE], [text("No.")]],
        ["First the list.", "No."],
    ),
    "a shorter first, and the old one grown": ([[LOOK], [text("So"), DONE]], ["So", "Look. All is done."]),
    "equal to the end of what it had": ([[LOOK, text("")], [ONE, LOOK, text("")]], ["toolu_1", "Look.", ""]),
    "calls in another order": ([[ONE, TWO], [TWO, ONE]], ["toolu_2", "toolu_1"]),
    "a new first call": ([[TWO], [ONE, TWO]], ["toolu_1", "toolu_2"]),
    "a call before a text": ([[LOOK, ONE], [ONE, LOOK]], ["toolu_1", "Look."]),
}
"""The blocks of an answer in each life of its log, and what it says in the end."""


CLINE = "1795380519726_bd6og"


def claude_answer(blocks: list[dict[str, Any]]) -> Case:
    log = Log()
    return claude(lines(log.user("Go on"), log.assistant("answer", *blocks, uuid="answered")), b"")


def cline_answer(blocks: list[dict[str, Any]]) -> Case:
    """In a conversation of Cline CLI, which writes the whole file anew as it grows."""
    messages = [
        {"id": "asked", "role": "user", "content": [text("Go on")], "ts": 1},
        {"id": "answer", "role": "assistant", "content": blocks, "ts": 1},
    ]
    file = msgspec.json.encode({"version": 1, "sessionId": CLINE, "messages": messages})
    return Case(f".cline/data/sessions/{CLINE}/{CLINE}.messages.json", f"cline:{CLINE}", file, b"")


@pytest.mark.parametrize("make", [claude_answer, cline_answer])
@pytest.mark.parametrize(("blocks", "said"), LIVES.values(), ids=list(LIVES))
def test_an_answer_says_what_its_log_says_in_the_order_of_the_log(
    blocks: list[list[dict[str, Any]]],
    said: list[str],
    make: Callable[[list[dict[str, Any]]], Case],
    home: Path,
    tmp_path: Path,
) -> None:
    """C8: and what an edit took away is beside it."""
    cases, store = [make(each) for each in blocks], tmp_path / "store.db"
    log = home / cases[0].path
    log.parent.mkdir(parents=True)
    for each in cases:
        log.write_bytes(each.first)
        sync(store)
    for _ in range(2):
        found = history(store, cases[0].session_id).values()
        [answer] = [message for message, place in found if message.id.endswith("answer") and place.fate is Fate.ACTIVE]
        assert [part_said(part) for part in answer.parts] == said
        every = "".join(part_said(part) for message, _ in found for part in message.parts)
        assert all(block.get("text", "") in every for each in blocks for block in each)
        rebuild(store)


def part_said(part: Part) -> str:
    if isinstance(part, ToolCallPart):
        return part.tool_call_id
    assert isinstance(part, TextPart | ReasoningPart)
    return part.text


def said_of(store: Path) -> tuple[str | None, SessionCounts]:
    """The title of the session, and how much it holds."""
    with open_store(store) as opened:
        session = opened.session(f"claude-code:{SESSION}")
    return session.title, msgspec.structs.replace(session.counts, events=0)


TITLED = lines({"type": "ai-title", "aiTitle": "Of the older file", "sessionId": SESSION})
RETITLES = {
    "edited": (edited("Delete it all, please", "Done", "a"), edited("Please keep everything", "No", "b")),
    "cut off": (claude_turns("one", "two"), claude_turns("one")),
    "other content": (claude_turns("one", "two"), claude_turns("x")),
    "another title": (claude_turns("one") + TITLED, claude_turns("one", "two")),
}


@pytest.mark.parametrize("case", RETITLES.values(), ids=list(RETITLES))
def test_title_and_counts_are_those_of_the_log_as_it_is_now(
    case: tuple[bytes, bytes], home: Path, tmp_path: Path
) -> None:
    """C8: what the file held before is kept, but is neither the title nor counted; also in `turnlog show`."""
    log, store, fresh = home / claude(b"", b"").path, tmp_path / "store.db", tmp_path / "fresh.db"
    log.parent.mkdir(parents=True)
    for content in case:
        log.write_bytes(content)
        sync(store)
    sync(fresh)
    expected = said_of(fresh)
    assert said_of(store) == expected
    rebuild(store)
    assert said_of(store) == expected
    log.write_bytes(case[0])
    sync(store)
    fresh.unlink()
    sync(fresh)
    assert said_of(store) == said_of(fresh)


def test_a_title_in_another_file_stays_when_the_log_is_written_anew(home: Path, tmp_path: Path) -> None:
    log, store = home / claude(b"", b"").path, tmp_path / "store.db"
    beside = log.with_suffix("") / "custom-title.json"
    beside.parent.mkdir(parents=True)
    beside.write_text('{"customTitle": "Named by me"}')
    for content in (claude_turns("one"), claude_turns("x")):
        log.write_bytes(content)
        sync(store)
        assert said_of(store)[0] == "Named by me"


def test_another_record_of_the_same_id_does_not_mix_with_the_first(home: Path, tmp_path: Path) -> None:
    """C8: nothing was cut off. The later record of an id counts, and what follows it; a diagnostic says so."""
    log, store = Log(), tmp_path / "store.db"
    first = lines(log.user("Delete it all, please"))
    shared, log.last = log.last, None
    other = lines(log.user("Keep everything", uuid=shared), log.assistant("m1", text("Kept")))
    again = lines(log.assistant("m1", text("Kept, I said"), uuid=log.last, parentUuid=shared))
    path = home / claude(b"", b"").path
    path.parent.mkdir(parents=True)
    for content in (first, first + other, first + other + again):
        path.write_bytes(content)
        sync(store)
    fresh = tmp_path / "fresh.db"
    sync(fresh)
    for each in (store, fresh):
        found = history(each, f"claude-code:{SESSION}").values()
        told = [(words(message), place.fate) for message, place in found]
        assert told[0] == (["Delete it all, please"], Fate.REWOUND)
        assert told[1] == (["Keep everything"], Fate.ACTIVE)
        assert told[2][1] is Fate.ACTIVE
        with open_store(each) as opened:
            reasons = [found.reason for found in opened.diagnostics().items]
        assert [f"another record is called '{shared}' too" in reasons[0], len(reasons)] == [True, 2]


def test_a_record_appended_in_place_of_another_says_what_it_says(home: Path, tmp_path: Path) -> None:
    first = claude_turns("one", "two")
    log, store = home / claude(b"", b"").path, tmp_path / "store.db"
    log.parent.mkdir(parents=True)
    for content in (first, first[: first.index(b"\n") + 1]):
        log.write_bytes(content)
        sync(store)
    with log.open("ab") as file:
        file.write(first.split(b"\n")[1].replace(b"one, done", b"1") + b"\n")
    sync(store)
    found = history(store, f"claude-code:{SESSION}").values()
    assert [words(message) for message, place in found if place.fate is Fate.ACTIVE] == [["one"], ["1"]]
    assert ["one, done"] in [words(message) for message, place in found if place.fate is Fate.SUPERSEDED]


def cline_file(session: str, ids: list[str]) -> bytes:
    """A conversation of Cline CLI, which writes the whole file anew as it grows."""
    roles = ("user", "assistant")
    messages = [
        {"id": name, "role": roles[number % 2], "content": [{"type": "text", "text": f"text {number}"}], "ts": 1}
        for number, name in enumerate(ids)
    ]
    return msgspec.json.encode({"version": 1, "agent": "lead", "sessionId": session, "messages": messages})


def test_a_result_with_another_number_is_at_its_call_once(home: Path, tmp_path: Path) -> None:
    """C8: the name of a result has its number in the message of the results."""
    store, log = tmp_path / "store.db", home / cline_answer([]).path
    log.parent.mkdir(parents=True)
    for names in (["one", "two"], ["two"]):
        results = [{"type": "tool_result", "tool_use_id": name, "content": f"output of {name}"} for name in names]
        contents = {"assistant": [call("one"), call("two")], "user": results}
        messages = [{"id": role, "role": role, "content": content, "ts": 1} for role, content in contents.items()]
        log.write_bytes(msgspec.json.encode({"version": 1, "sessionId": CLINE, "messages": messages}))
        sync(store)
    for _ in range(2):
        [(found, _)] = history(store, f"cline:{CLINE}").values()
        results_of = [each.results for each in found.parts if isinstance(each, ToolCallPart)]
        assert [[result.output_text for result in each] for each in results_of] == [
            ["output of one"],
            ["output of two"],
        ]
        rebuild(store)


def test_a_result_whose_call_is_gone_is_at_the_other_call_of_its_id(home: Path, tmp_path: Path) -> None:
    """R-C8: and not at the one that the file no longer has."""
    store, fresh, log = tmp_path / "store.db", tmp_path / "fresh.db", home / cline_answer([]).path
    log.parent.mkdir(parents=True)
    results = [[{"type": "tool_result", "tool_use_id": "c", "content": words}] for words in ("one", "two")]
    contents = [[call("c")], results[0], [call("c")], results[1]]
    messages = [
        {"id": f"m{number}", "role": "user" if number % 2 else "assistant", "content": content, "ts": 1}
        for number, content in enumerate(contents)
    ]
    for each in (messages, messages[1:]):
        log.write_bytes(msgspec.json.encode({"version": 1, "sessionId": CLINE, "messages": each}))
        sync(store)
    sync(fresh)
    [(expected, _)] = history(fresh, f"cline:{CLINE}").values()
    assert words(expected) == ["one\ntwo"]
    for _ in range(2):
        found = [
            words(message) for message, place in history(store, f"cline:{CLINE}").values() if place.fate not in LEFT
        ]
        assert found == [words(expected)]
        rebuild(store)


@pytest.mark.parametrize("command", ["ls", "pwd"])
def test_two_calls_of_one_id_stay_two_however_often_the_file_is_written(
    command: str, home: Path, tmp_path: Path
) -> None:
    store, log = tmp_path / "store.db", home / cline_answer([]).path
    log.parent.mkdir(parents=True)
    calls = [call("toolu_1", command="pwd"), call("toolu_1", command=command)]
    for count in range(4):
        log.write_bytes(cline_answer([*calls, *[text("More.")] * count]).first)
        sync(store)
        [answer] = [each for each, _ in history(store, f"cline:{CLINE}").values() if each.role == "assistant"]
        assert [part_said(part) for part in answer.parts] == ["toolu_1", "toolu_1", *["More."] * count]
        assert [part.input_value() for part in answer.parts if isinstance(part, ToolCallPart)] == [
            {"command": "pwd"},
            {"command": command},
        ]


@pytest.mark.parametrize("ids", [["m1", "m2", "m3", "m4"], ["m4", "m3", "m2", "m1"]], ids=["rising", "falling"])
def test_a_file_rewritten_as_it_grows_ends_with_its_newest_message(ids: list[str], home: Path, tmp_path: Path) -> None:
    session, store, log = CLINE, tmp_path / "store.db", home / cline_answer([]).path
    log.parent.mkdir(parents=True)
    for count in (2, 4):
        log.write_bytes(cline_file(session, ids[:count]))
        sync(store)
    with open_store(store) as opened:
        found = opened.messages(f"cline:{session}")
    assert [(each.message.id, each.membership.fate) for each in found] == [(name, Fate.ACTIVE) for name in ids]


@pytest.mark.parametrize("names", [("Apples", "Pears"), ("Pears", "Apples")])
@pytest.mark.parametrize("is_users", ["true", "false"])
def test_the_newest_name_in_a_file_beside_the_log_is_the_title(
    names: tuple[str, str], is_users: str, home: Path, tmp_path: Path
) -> None:
    session, store = "3a1a7239-e53d-442c-905c-df7a746e5303", tmp_path / "store.db"
    folder = home / f".copilot/session-state/{session}"
    folder.mkdir(parents=True)
    start = {"type": "session.start", "id": "e1", "timestamp": TIME, "data": {"sessionId": session, "version": 1}}
    asked = {"type": "user.message", "id": "e2", "timestamp": TIME, "data": {"content": "Sort the fruit"}}
    (folder / "events.jsonl").write_bytes(lines(start, asked))
    for name in names:
        (folder / "workspace.yaml").write_text(f"id: {session}\nname: {name}\nuser_named: {is_users}\n")
        sync(store)
    for again in (lambda: None, lambda: rebuild(store)):
        again()
        with open_store(store) as opened:
            assert opened.session(f"copilot-cli:{session}").title == names[1]
