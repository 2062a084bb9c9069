"""Which blocks of a message's records are one part, however the log is split: those that the log shows to be one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from support.claude_files import AGENT, Log, call, fold, gather, lines, session_source, text
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart

Record = dict[str, Any]


def thought(words: str, signature: str | None = None) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": words}
    return block if signature is None else {**block, "signature": signature}


def read(*records: Record) -> Message:
    """The message that these records bring, which is the same line by line and in one piece."""
    whole = fold(*records)
    offset, state, pieces = 0, None, gather()
    for record in records:
        line = lines(record)
        reading = AGENT.fold(session_source(), state)
        pieces.add(reading.feed(line, offset))
        offset, state = offset + len(line), reading.state()
    assert pieces.as_json() == whole.as_json()
    assert [part.id for part in whole.messages["msg_1"].parts] == [
        f"msg_1.{number}" for number in range(len(whole.messages["msg_1"].parts))
    ]
    return whole.messages["msg_1"]


def says(message: Message) -> list[str]:
    return [
        part.tool_call_id if isinstance(part, ToolCallPart) else part.text
        for part in message.parts
        if isinstance(part, ToolCallPart | TextPart | ReasoningPart)
    ]


def written(*contents: list[dict[str, Any]], stop: str | None = None) -> list[Record]:
    """Records of one message with these blocks, after a prompt."""
    log = Log("2.1.20")
    return [log.user("Fix it"), *(log.assistant("msg_1", *content, stop=stop) for content in contents)]


A, B = call("toolu_a"), call("toolu_b")


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param([[text("Now")], [A], [text("Now the tests.")]], ["Now", "toolu_a", "Now the tests."], id="begins"),
        pytest.param([[text("Now")], [A], [text("Now")]], ["Now", "toolu_a", "Now"], id="equal"),
        pytest.param([[text("Now")], [A], [B], [text("Now")]], ["Now", "toolu_a", "toolu_b", "Now"], id="parallel"),
        pytest.param([[text("Now"), A, text("Now on")]], ["Now", "toolu_a", "Now on"], id="in one record"),
        pytest.param([[text("Now"), text("Now on")]], ["Now", "Now on"], id="side by side in one record"),
        pytest.param([[text("Now"), text("Now")]], ["Now", "Now"], id="twice in one record"),
        pytest.param([[text("No"), text("Now")], [text("Now")]], ["No", "Now"], id="a snapshot of the second"),
        pytest.param([[thought("Hm")], [A], [thought("Hmm")]], ["Hm", "toolu_a", "Hmm"], id="thoughts"),
        pytest.param(
            [[thought("Hm", "c2ln")], [thought("Hmm", "bWln")]], ["Hm", "Hmm"], id="thoughts with their signatures"
        ),
        pytest.param([[thought("", "c2ln")], [thought("", "bWln")]], ["", ""], id="withheld thoughts"),
        pytest.param([[thought("Hm")], [text("Hmm")]], ["Hm", "Hmm"], id="a thought and a text"),
        pytest.param(
            [[text(""), text("No")], [A], [text("Now"), text("Now on")]],
            ["", "No", "toolu_a", "Now", "Now on"],
            id="fewer blocks than the message has",
        ),
        pytest.param([[text("a" * 99 + "b" + "c" * 99)], [text("a" * 99 + "d" + "c" * 99)]], None, id="long texts"),
    ],
)
def test_blocks_that_only_look_alike_are_several(contents: list[list[dict[str, Any]]], expected: list[str]) -> None:
    """R-S15: no text is lost, and each is where the model wrote it."""
    expected = expected or [block["text"] for blocks in contents for block in blocks]
    assert says(read(*written(*contents))) == expected


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param(
            [[text("Let")], [text("Let me")], [text("Let me look")], [A]], ["Let me look", "toolu_a"], id="text"
        ),
        pytest.param([[text("")], [text("Let me")]], ["Let me"], id="an empty text"),
        pytest.param([[thought("H")], [thought("Hm")], [thought("Hm", "c2ln")], [A]], ["Hm", "toolu_a"], id="thought"),
        pytest.param([[text("Done")], [text("Done")]], ["Done"], id="once more with other counts"),
        pytest.param(
            [[text("Let")], [text("Let me"), A], [text("Let me"), A, text("So")], [text("Let me"), A, text("So it")]],
            ["Let me", "toolu_a", "So it"],
            id="the whole message",
        ),
        pytest.param(
            [[text("Let me"), A, text("So")], [A, text("So it")]], ["Let me", "toolu_a", "So it"], id="its end"
        ),
    ],
)
def test_snapshots_of_a_stream_are_one_reading(contents: list[list[dict[str, Any]]], expected: list[str]) -> None:
    """R-S15: some versions wrote a block again when it had grown."""
    assert says(read(*written(*contents))) == expected


def test_the_signature_of_a_thought_that_a_snapshot_had_without_it_is_kept() -> None:
    (found,) = read(*written([thought("Hm")], [thought("Hm", "c2ln")])).parts
    assert isinstance(found, ReasoningPart)
    assert found.provider is not None
    assert found.provider.opaque == {"signature": "c2ln"}


def test_no_text_grows_after_the_message_has_stopped() -> None:
    """Since 2.1.100 every record of a message has its stop reason."""
    assert says(read(*written([text("Now")], [text("Now on")], stop="end_turn"))) == ["Now", "Now on"]


CONTENTS = [[text("Now")], [A], [text("Now")], [B], [text("Now the tests.")]]
SAID = ["Now", "toolu_a", "Now", "toolu_b", "Now the tests."]


@pytest.mark.parametrize("count", range(1, len(CONTENTS) + 1))
@pytest.mark.parametrize("times", [1, 2])
def test_records_that_are_repeated_bring_nothing(count: int, times: int) -> None:
    """R-K4: a restart of the editor, or a compaction in the desktop app, writes records again."""
    prompt, *records = written(*CONTENTS)
    results = [Log("2.1.20").result(name, uuid=f"r{name}") for name in ("toolu_a", "toolu_b")]
    assert says(read(prompt, *records, *results, *[prompt, *records[:count]] * times)) == SAID
    assert says(read(prompt, *records, *results, *[prompt, *records[-count:]] * times)) == SAID
    # Between the records of the message, which then goes on.
    assert says(read(prompt, *records[:count], *records[:count] * times, *records[count:])) == SAID


@pytest.mark.parametrize("count", range(1, len(CONTENTS) + 1))
def test_a_message_that_is_repeated_under_other_ids_is_one(count: int) -> None:
    """R-K4: a history that was copied into its own log, after another message or before the message went on."""
    log = Log("1.0.24")
    first = [log.user("Fix it"), *(log.assistant("msg_1", *blocks, stop=None) for blocks in CONTENTS)]
    between = [log.user("Go on"), log.assistant("msg_2", text("Now"))]
    log.last = None
    again = [log.user("Fix it"), *(log.assistant("msg_1", *blocks, stop=None) for blocks in CONTENTS[:count])]
    assert says(read(*first, *between, *again)) == SAID
    rest = [log.assistant("msg_1", *blocks, stop=None) for blocks in CONTENTS[count:]]
    assert says(read(*first[: count + 1], *between, *again, *rest)) == SAID


def context(log: Log, words: str) -> Record:
    return log.record("attachment", attachment={"type": "edited_text_file", "filename": "/w/a", "snippet": words})


def test_an_equal_text_after_a_queued_prompt_is_kept() -> None:
    """R-S15: one equal block is no repetition of the message."""
    log = Log("2.1.20")
    records = [log.user("Fix it"), log.assistant("msg_1", text("Now")), log.assistant("msg_1", A)]
    records += [log.user("And that"), context(log, "1"), log.result("toolu_a")]
    assert says(read(*records, log.assistant("msg_1", text("Now")), log.assistant("msg_1", B))) == [
        *("Now", "toolu_a", "Now", "toolu_b")
    ]


def test_an_equal_text_between_other_answers_is_kept() -> None:
    log = Log("2.1.20")
    records = [log.user("Fix it"), log.assistant("msg_0", text("So")), log.assistant("msg_1", text("Now"))]
    for block in (A, text("Now"), B):
        records += [log.assistant("msg_0", text(f"So {len(records)}")), log.assistant("msg_1", block)]
    assert says(read(*records)) == ["Now", "toolu_a", "Now", "toolu_b"]


def test_blocks_that_all_follow_the_prompt_are_kept() -> None:
    log = Log("2.1.20")
    prompt = log.user("Fix it")
    records = [log.assistant("msg_1", *blocks, parentUuid=prompt["uuid"]) for blocks in CONTENTS]
    assert says(read(prompt, *records)) == SAID


def again(records: list[Record]) -> list[Record]:
    """These records under other ids."""
    ids = {record["uuid"]: f"{int(record['uuid'][0]) + 1}{record['uuid'][1:]}" for record in records}
    return [{**record, "uuid": ids[record["uuid"]], "parentUuid": ids.get(record["parentUuid"])} for record in records]


def history(log: Log, *contents: list[dict[str, Any]], message_id: str = "msg_1") -> list[Record]:
    """Records of a message with context between them, and the results of calls that have one."""
    records: list[Record] = []
    for blocks in contents:
        records.append(log.assistant(message_id, *blocks, stop=None))
        if blocks[-1] == A:
            records += [log.result("toolu_a"), context(log, "1")]
    return records


@pytest.mark.parametrize("first", ["prompt", "context", "context beside it", "answer"])
@pytest.mark.parametrize("cumulative", [False, True])
def test_a_history_that_is_repeated_under_other_ids_brings_nothing(first: str, cumulative: bool) -> None:
    """R-K4: with a call without a result, context and repeated records in it, and a later prompt."""
    log = Log("1.0.24")
    whole = [text("Well"), *(block for blocks in CONTENTS for block in blocks)]
    contents = [whole[: count + 1] if cumulative else [block] for count, block in enumerate(whole)]
    said = ["Well", *SAID]
    records = [log.user("Fix it")]
    if first.startswith("context"):
        records.append(context(log, "1"))
    if first == "context beside it":
        log.last = records[0]["uuid"]
    elif first == "answer":
        records += history(log, [text("So")], message_id="msg_0")
    records += history(log, *contents)
    later = [log.user("Go on"), log.assistant("msg_2", text("Now"))]
    copy = again(records)
    assert says(read(*records, *later, *copy)) == said
    assert says(read(*records, *later, *copy, *again(copy))) == said
    for place in range(1, len(copy)):
        assert says(read(*records, *later, *copy[:place], records[-1], *copy[place:])) == said


def test_snapshots_that_are_repeated_are_one_reading() -> None:
    grown = [[text("Let")], [text("Let me")], [A], [text("Let")], [text("Let us")]]
    prompt, *records = written(*grown)
    expected = ["Let me", "toolu_a", "Let us"]
    assert says(read(prompt, *records, *records)) == expected
    assert says(read(prompt, *records, records[0], records[3])) == expected
    log = Log("1.0.24")
    log.count = 100
    copy = [log.user("Fix it"), *(log.assistant("msg_1", *blocks, stop=None) for blocks in grown)]
    assert says(read(prompt, *records, *copy)) == expected


def test_a_record_that_has_grown_keeps_its_block() -> None:
    prompt, first, asked = written([text("Let")], [A])
    grown = {**first, "message": {**first["message"], "content": [text("Let me")]}}
    assert says(read(prompt, first, asked, grown, first)) == ["Let me", "toolu_a"]


def test_records_of_one_id_that_say_different_things_are_both_kept() -> None:
    prompt, first, asked = written([text("Let")], [A])
    other = {**first, "message": {**first["message"], "content": [text("So")]}}
    assert says(read(prompt, first, asked, other, first, other)) == ["Let", "toolu_a", "So"]


@pytest.mark.parametrize("seed", range(40))
def test_any_message_whose_records_are_repeated_says_what_it_said_once(seed: int) -> None:
    """R-S15, R-C5: made-up messages of texts and calls, in records of one block or several, with repetitions."""
    random = Random(seed)
    blocks = [
        call(f"toolu_{number}") if random.random() < 0.5 else text(random.choice(["No", "Now", "Now on", ""]))
        for number in range(random.randint(1, 9))
    ]
    # Texts side by side may be snapshots, so a call is between them.
    for place in range(len(blocks) - 1, 0, -1):
        if blocks[place]["type"] == blocks[place - 1]["type"] == "text":
            blocks.insert(place, call(f"toolu_between_{place}"))
    contents: list[list[dict[str, Any]]] = []
    for block in blocks:
        if contents and random.random() < 0.2:
            contents[-1].append(block)
        else:
            contents.append([block])
    prompt, *records = written(*contents)
    repeated = list(records)
    for _ in range(random.randint(0, 5)):
        begin = random.randrange(len(records))
        copies = records[begin : begin + random.randint(1, 4)]
        place = max(repeated.index(copies[-1]) + 1, random.randint(0, len(repeated)))
        repeated[place:place] = copies
    assert says(read(prompt, *repeated)) == [block.get("text", block.get("id")) for block in blocks]
