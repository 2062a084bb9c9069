"""A stored state is only read by the version of the reader that wrote it: another shape needs another version."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support import fold_states
from support.fold_states import Pinned, faults, pinned, shape, states_now
from turnlog.agents import agent, agents


class Inner(msgspec.Struct):
    """What a state holds."""

    at: int = 0


class Renamed(msgspec.Struct):
    """The same by another name."""

    at: int = 0


class Changed(msgspec.Struct):
    """The same with another type."""

    at: float = 0


class State(msgspec.Struct):
    """A state."""

    inner: dict[str, Inner] = {}
    before: State | None = None


@pytest.fixture(scope="module")
def now() -> dict[str, Pinned]:
    return states_now()


def test_each_state_has_the_shape_of_its_version(now: dict[str, Pinned]) -> None:
    before = pinned()
    if found := faults(before, now):
        pytest.fail("\n".join(found))
    assert before == now, "run `make states`"


def test_every_agent_is_in_the_table() -> None:
    assert set(pinned()) == {each.name for each in agents()}


def test_states_are_found() -> None:
    """Also those of printed streams and hooks, those that no sample needs, and those that are no object."""
    found = {name: fold_states.shapes_of(agent(name)) for name in ("claude-code", "mistral-vibe", "atif", "amp")}
    assert {name: len(shapes) for name, shapes in found.items()} == {
        "claude-code": 3,
        "mistral-vibe": 2,
        "atif": 1,
        "amp": 0,
    }


def test_a_shape_is_names_and_types_at_every_depth() -> None:
    def of(inner: type, name: str = "inner") -> str:
        return shape(msgspec.defstruct("Any", [(name, dict[str, inner], {})]))

    assert of(Inner) == of(Renamed)
    assert len({of(Inner), of(Changed), of(Inner, "other"), shape(State)}) == 4


def test_a_new_shape_needs_a_new_version_also_for_a_new_table(
    now: dict[str, Pinned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def states() -> dict[str, Pinned]:
        return changed

    monkeypatch.setattr(fold_states, "states_now", states)
    table = tmp_path / "table.txt"
    table.write_text(fold_states.TABLE.read_text())
    version = now["openclaw"].version
    changed = {**now, "openclaw": Pinned(version, "0" * 12)}
    with pytest.raises(SystemExit, match=rf"^openclaw: .* set it to {version + 1}, then run `make states`\.$"):
        fold_states.write(table)
    assert pinned(table) == now
    changed = {**now, "openclaw": Pinned(version + 1, "0" * 12)}
    fold_states.write(table)
    assert pinned(table) == changed
    changed = now
    with pytest.raises(SystemExit, match="never lowered"):
        fold_states.write(table)
