"""What of a session the model sees: the active branch, compactions applied, everything left out reported."""

from types import SimpleNamespace
from typing import Any, cast

from support.provider_messages import assistant, result, system, user
from turnlog.model import (
    CompactionEvent,
    Fate,
    HistoryEvent,
    Membership,
    Message,
    Origin,
    RewindEvent,
    ToolResultEvent,
)
from turnlog.providers.context import ContextHistory, ModelContext, select_context


def context(*placed: tuple[Message, Fate], events: tuple[HistoryEvent, ...] = ()) -> ModelContext:
    """The context of a session whose messages are at positions 10, 20, 30, …"""
    memberships = tuple(
        Membership(session_id="s", message_id=message.id, position=10 * index, fate=fate)
        for index, (message, fate) in enumerate(placed, start=1)
    )
    history: Any = SimpleNamespace(
        messages=tuple(message for message, _ in placed), memberships=memberships, events=events
    )
    return select_context(cast("ContextHistory", history))


def ids(found: ModelContext) -> list[str]:
    return [message.id for message in found.messages]


def summary(id: str) -> Message:
    return Message(id=id, role="developer", origin=Origin.COMPACTION, parts=user("so far").parts)


def test_only_the_active_branch() -> None:
    fates = [Fate.ACTIVE, Fate.REWOUND, Fate.RETRACTED, Fate.SUPERSEDED, Fate.SIDECAR, Fate.ACTIVE]
    found = context(*[(user("q", id=fate.value + str(index)), fate) for index, fate in enumerate(fates)])
    assert ids(found) == ["active0", "active5"]
    assert [(repair.kind, repair.message_id) for repair in found.repairs] == [
        ("left-out", "rewound1"),
        ("left-out", "retracted2"),
        ("left-out", "superseded3"),
        ("left-out", "sidecar4"),
    ]


def test_a_compaction_gives_summary_then_kept_then_later() -> None:
    found = context(
        (system("prompt"), Fate.COMPACTED),
        (user("old", id="old"), Fate.COMPACTED),
        (assistant("kept", id="kept"), Fate.ACTIVE),
        (summary("sum"), Fate.ACTIVE),
        (user("new", id="new"), Fate.ACTIVE),
        events=(CompactionEvent(id="c", position=35, summary_message_id="sum", kept_message_ids=("kept",)),),
    )
    assert ids(found) == ["s", "sum", "kept", "new"]
    assert found.messages[1].role == "user"
    assert [repair.message_id for repair in found.repairs] == ["old"]


def test_a_summary_is_found_where_its_record_does_not_name_it() -> None:
    found = context(
        (user("kept", id="kept"), Fate.ACTIVE),
        (user("between", id="between"), Fate.ACTIVE),
        (summary("sum"), Fate.ACTIVE),
        events=(CompactionEvent(id="c", position=15),),
    )
    assert ids(found) == ["sum", "kept", "between"]


def test_a_replacement_takes_the_place_of_everything_before() -> None:
    replacement = (user("so far", id="r1"), assistant("yes", id="r2"))
    found = context(
        (user("old", id="old"), Fate.ACTIVE),
        (user("new", id="new"), Fate.ACTIVE),
        events=(CompactionEvent(id="c", position=15, replacement=replacement),),
    )
    assert ids(found) == ["r1", "r2", "new"]
    assert [repair.message_id for repair in found.repairs] == ["old"]


def test_the_last_compaction_counts() -> None:
    first = CompactionEvent(id="c1", position=15, replacement=(user("1", id="r1"),))
    second = CompactionEvent(id="c2", position=25, replacement=(user("2", id="r2"),))
    placed = [(user("q", id=f"u{number}"), Fate.ACTIVE) for number in (1, 2, 3)]
    assert ids(context(*placed, events=(first, second))) == ["r2", "u3"]


def test_a_compaction_that_was_rewound_does_not_count() -> None:
    placed = [(user("q", id=f"u{number}"), Fate.ACTIVE) for number in (1, 2, 3)]
    compaction = CompactionEvent(id="c", position=25, replacement=(user("r", id="r"),))
    before, after = (RewindEvent(id="w", position=26, to_message_id=target) for target in ("u2", "u3"))
    assert ids(context(*placed, events=(compaction, before))) == ["u1", "u2", "u3"]
    assert ids(context(*placed, events=(compaction, after))) == ["r", "u3"]
    assert ids(context(*placed, events=(compaction, RewindEvent(id="w")))) == ["u1", "u2", "u3"]
    rewound = CompactionEvent(id="c", position=25, summary_message_id="sum")
    assert ids(context(*placed, (summary("sum"), Fate.REWOUND), events=(rewound,))) == ["u1", "u2", "u3"]


def test_results_without_a_call_are_left_out_and_reported() -> None:
    orphan = ToolResultEvent(tool_call_id="c9", result=result("r", id="r9"))
    double = ToolResultEvent(tool_call_id="c1", result=result("r", id="r1"), message_id="a", duplicate=True)
    known = ToolResultEvent(tool_call_id="c1", result=result("r", id="r1"), message_id="a")
    found = context((user("q"), Fate.ACTIVE), events=(orphan, double, known))
    assert [(repair.kind, repair.tool_call_id) for repair in found.repairs] == [
        ("orphan-result", "c9"),
        ("duplicate-result", "c1"),
    ]
