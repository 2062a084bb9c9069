"""What the passes of a transaction say they touch is what they touch, and their order follows from it."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest

from support.claude_forks import EQUAL, family
from support.codex_files import THREAD, meta, prompt
from support.hook_recordings import NAMES, recording
from support.pass_recorder import Touched, faults, recorded_passes
from support.plain_store import PRICE_VERSION, price
from support.toy_agent import line
from support.toy_store import ToyStore
from turnlog.agents import agents
from turnlog.agents.base import Agent, Source
from turnlog.model import Message, TextPart
from turnlog.server.sample import LOGS
from turnlog.store.connection import connect
from turnlog.store.reconcile.passes import PASSES, Pass
from turnlog.store.reconcile.precedence import PRECEDENCE
from turnlog.store.values import AgentAnswer
from turnlog.store.writing.native import open_native
from turnlog.sync.reader import SourceReader

DATA = Path(__file__).parents[2] / "data"
CASES = sorted(
    case
    for agent in ("claude_code", "codex", "gemini_cli", "klaude", "opencode")
    for group in (DATA / agent).iterdir()
    if group.is_dir()
    for case in group.iterdir()
    if case.is_dir()
)

PROMPT = line(kind="prompt", id="r1", message="m1", text="please", at=1)
ANSWER = line(kind="text", id="r2", parent="r1", message="m2", text="done", at=2, model="opus", tokens=[10, 5])
PRINTED = line(kind="text", message="item1", text="done", at=2, model="opus", tokens=[7, 3]) + line(kind="note", at=3)


def read_recorded(path: Path, roots: list[Path]) -> None:
    """The logs that every agent recorded there, in an order by chance, some together and some apart."""
    random = Random(7)
    sources: list[tuple[Agent, Source]] = []
    for agent in agents():
        sources += [(agent, source) for source in agent.discover(roots)]
    random.shuffle(sources)
    with closing(connect(path, checked=False)) as connection:
        reader = SourceReader(connection, price, PRICE_VERSION)
        while sources:
            size = random.randint(1, 3)
            reader.read(sources[:size])
            del sources[:size]


def read_hooks(path: Path, folder: Path) -> None:
    """What hooks brought while agents ran, and then their logs."""
    for name in NAMES:
        recorded = recording(name)
        spool = recorded.write_spool(folder / name, recorded.lines)
        with closing(connect(path.with_name(f"{name}.db"), checked=False)) as connection:
            reader = SourceReader(connection, price, PRICE_VERSION)
            for sources in ([spool], recorded.logs()):
                assert reader.read([(recorded.agent, source) for source in sources]).problems == []


def read_stream_and_chat(folder: Path) -> None:
    """One answer as a chat saved it, as the agent printed it, and as it logged it."""
    with ToyStore(folder) as store:
        chat = open_native(store.path, price, PRICE_VERSION)
        question = Message(id="q1", role="user", parts=(TextPart(text="please"),))
        answer = Message(id="a1", role="assistant", parts=(TextPart(text="done"),))
        chat.save("turnlog:chat", [question, answer], answers={"a1": AgentAnswer("toy:s")})
        chat.close()
        store.add("s.stream", PRINTED)
        store.add("s.log", PROMPT + ANSWER)


def read_subagent_of_stream(folder: Path) -> None:
    """A subagent that a stream named after the call that started it, and its own log; then its parent goes on."""
    started = [line(kind="spawn", id=f"s-{name}", call="c1", session=f"toy:{name}", at=1) for name in ("named", "real")]
    with ToyStore(folder) as store:
        store.add("named.stream", PRINTED)
        store.add("real.log", ANSWER)
        store.add("p.log", PROMPT + b"".join(started))
        store.add("p.log", ANSWER)


def rewrite_log(folder: Path) -> None:
    """A log whose events are elsewhere once it is written anew, and one of whose messages it has no longer."""
    note = line(kind="note", id="n1", at=3)
    with ToyStore(folder) as store:
        store.add("s.log", PROMPT + note + line(kind="prompt", id="r0", message="m0", text="another", at=1))
        store.write("s.log", line(kind="note", id="n0", at=0) + PROMPT + note + ANSWER)
        store.read("s.log")


def rename_session(folder: Path) -> None:
    """A session that another file names after its log was read: that transaction speaks of it only by its name."""
    log, index = folder / "sessions" / "2026" / "11" / "21" / f"rollout-{THREAD}.jsonl", folder / "session_index.jsonl"
    log.parent.mkdir(parents=True)
    for path, data in ((log, meta() + prompt("First")), (index, f'{{"id":"{THREAD}","thread_name":"one"}}\n'.encode())):
        path.write_bytes(data)
        read_recorded(folder.with_suffix(".db"), [folder])


def read_forks(folder: Path) -> None:
    """A session whose forks list the calls of an answer in another order."""
    for name, data in family(EQUAL, "cba", "bca").items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        read_recorded(folder.with_suffix(".db"), [folder])


def read_turn_twice(folder: Path) -> None:
    """Sessions whose calls are counted one by one beside the log of their home, and by the turn without it."""
    known = shutil.copytree(DATA / "grok_build" / "0.2.111" / "tour", folder / "known")
    unknown = shutil.copytree(known, folder / "unknown", ignore=shutil.ignore_patterns("unified.jsonl"))
    for home in (known, unknown):
        read_recorded(folder / "turns.db", [home])


def read_subagents_of_one_another(folder: Path) -> None:
    """Two sessions of which each says that the other one started it."""
    with ToyStore(folder) as store:
        for name, parent in (("a", "b"), ("b", "a")):
            store.add(f"{name}.sub", line(kind="origin", session=f"toy:{parent}") + PROMPT)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Touched]:
    """What each pass touched while all that was ever recorded of agents was read."""
    folder = tmp_path_factory.mktemp("passes")
    with recorded_passes() as found:
        samples = [shutil.copytree(home, folder / "samples" / home.name) for home in LOGS.iterdir() if home.is_dir()]
        read_recorded(folder / "samples.db", samples)
        for number, case in enumerate(CASES):
            read_recorded(folder / f"case{number}.db", [shutil.copytree(case, folder / f"case{number}")])
        read_hooks(folder / "hooks.db", folder / "hooks")
        read_stream_and_chat(folder / "chat")
        read_subagent_of_stream(folder / "named")
        rewrite_log(folder / "rewritten")
        rename_session(folder / "renamed")
        read_forks(folder / "forks")
        read_turn_twice(folder / "turns")
        read_subagents_of_one_another(folder / "one another")
    return found


def test_every_pass_touches_what_it_declares_in_the_order_that_follows(found: dict[str, Touched]) -> None:
    assert faults(PASSES, found) == []


def changed(name: str, **fields: object) -> list[Pass]:
    return [msgspec.structs.replace(step, **fields) if step.name == name else step for step in PASSES]


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
def test_a_wrong_declaration_is_found(step: Pass, found: dict[str, Touched]) -> None:
    for area in step.reads:
        assert f"{step.name} reads {area} without saying so" in faults(
            changed(step.name, reads=step.reads - {area}), found
        )
    for area in step.writes:
        assert f"{step.name} writes {area} without saying so" in faults(
            changed(step.name, writes=step.writes - {area}), found
        )
    assert f"{step.name} writes sources only in its declaration" in faults(
        changed(step.name, writes=step.writes | {"sources"}), found
    )
    if step.follows:
        assert faults(changed(step.name, follows=()), found) != []


def test_a_pass_that_runs_before_one_that_it_follows_is_found(found: dict[str, Touched]) -> None:
    for number, step in enumerate(PASSES):
        if step.follows:
            moved = [step, *PASSES[:number], *PASSES[number + 1 :]]
            assert f"{step.name} runs before {step.follows[0]}, which it follows" in faults(moved, found)


def test_every_lesser_source_has_a_pass_in_the_order_of_precedence() -> None:
    superseding = [step.why for step in PASSES if step.name.startswith("supersede")]
    lesser = [rule for rule in PRECEDENCE if rule.superseded]
    assert len(superseding) == len(lesser)
    assert all(rule.why in why for rule, why in zip(lesser, superseding, strict=True))
