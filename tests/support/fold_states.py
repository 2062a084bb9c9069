"""What the folds of each agent remember between two syncs, as a digest beside the agent's `parser_version`.

A stored state is decoded into the type that the fold has now, unless the agent's version has been raised: then the log
is read anew. So a state of another shape needs another version. `make states` writes the table that
`tests/agents/test_fold_states.py` compares, and refuses to where no version was raised.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import inspect

from turnlog.agents import agents
from turnlog.agents.base import Agent, Fold, SourceKind
from turnlog.server.sample import LOGS

TABLE: Final = Path(__file__).parents[1] / "data" / "fold_states.txt"
"""A line per agent: its name, its version, and the digest of its states."""

KINDS: Final = tuple(product(SourceKind, (True, False)))


class Pinned(NamedTuple):
    """The states of an agent, and the version that they are of."""

    version: int
    digest: str


def pinned(table: Path = TABLE) -> dict[str, Pinned]:
    """What the table says."""
    lines = [line.split() for line in table.read_text().splitlines()]
    return {name: Pinned(int(version), digest) for name, version, digest in lines}


def states_now() -> dict[str, Pinned]:
    """What the agents have."""
    return {each.name: Pinned(each.parser_version, digest_of(shapes_of(each))) for each in agents()}


def faults(before: Mapping[str, Pinned], now: Mapping[str, Pinned]) -> list[str]:
    """Each agent whose states no longer fit its version, and what to do."""
    found: list[str] = []
    for name in sorted(before.keys() & now.keys()):
        was, is_now = before[name], now[name]
        if is_now.version < was.version:
            found.append(f"{name}: its parser_version was {was.version}, and is {is_now.version}: it is never lowered.")
        elif is_now.digest != was.digest and is_now.version == was.version:
            found.append(
                f"{name}: what its folds remember has another shape, and stored states of parser_version {was.version}"
                f" have the old one: set it to {was.version + 1}, then run `make states`."
            )
    return found


def digest_of(shapes: Iterable[str]) -> str:
    """A short digest of shapes, in whatever order they are."""
    return hashlib.sha256("\n".join(sorted(shapes)).encode()).hexdigest()[:12]


def shapes_of(agent: Agent) -> list[str]:
    """The shape of what each fold of the agent remembers; none of a fold that remembers nothing.

    The folds are those of the sources in its sample, if they were of any kind. What no sample needs is found by the
    decoder that a module of the agent has for it (`state_codec`).
    """
    shapes: dict[type, str] = {}
    types = set[type]()
    for source in agent.discover([LOGS / agent.name]):
        for kind, appendable in KINDS:
            fold = agent.fold(msgspec.structs.replace(source, kind=kind, appendable=appendable))
            if type(fold) not in shapes:
                state = _state_of(fold)
                shapes[type(fold)] = shape(state) if isinstance(state, type) else state
                types |= {state} if isinstance(state, type) else set()
    others = [kind for kind in _decoded_in(type(agent).__module__) if kind not in types]
    return [found for found in (*shapes.values(), *map(shape, others)) if found]


def _state_of(fold: Fold) -> type | str:
    """The type of a fold's state; of one that is no object, what it is at first."""
    state = fold.state()
    kept = [value for value in vars(fold).values() if isinstance(value, msgspec.Struct)]
    found = {type(value) for value in kept if msgspec.json.encode(value) == state}
    if found:
        [kind] = found
        return kind
    assert not state.startswith((b"{", b"[")), f"{type(fold).__name__} does not say what its state is made of"
    return state.decode()


def _decoded_in(package: str) -> Iterator[type]:
    """The states for which the modules of a package have a decoder."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        decode = vars(import_module(module.name)).get("decode_state")
        if decode is not None:
            yield decode.__self__.type


def shape(kind: Any) -> str:
    """Names and types of everything in a type, recursively; the names of the classes do not matter."""
    return _shape(inspect.type_info(kind), ())


def _shape(info: inspect.Type, within: tuple[type, ...]) -> str:
    if isinstance(info, inspect.EnumType):
        return _words("enum", sorted(map(repr, cast("Any", info).cls._value2member_map_)))
    cls: type | None = getattr(info, "cls", None)
    if cls is None:
        inner = [_inner(getattr(info, name), within) for name in info.__struct_fields__]
        return _words(type(info).__name__, inner)
    if cls in within:
        return f"^{len(within) - within.index(cls)}"
    fields: tuple[inspect.Field, ...] | None = getattr(info, "fields", None)
    if fields is None:
        return f"{type(info).__name__} {cls.__module__}.{cls.__qualname__}"
    marks = [repr(getattr(info, name, None)) for name in ("tag_field", "tag", "array_like")]
    inside = [
        f"{each.encode_name}{'' if each.required else '?'}: {_shape(each.type, (*within, cls))}" for each in fields
    ]
    return _words(type(info).__name__, [*marks, *inside])


def _inner(value: Any, within: tuple[type, ...]) -> str:
    if isinstance(value, inspect.Type):
        return _shape(value, within)
    if isinstance(value, tuple):
        return _words("", [_inner(each, within) for each in cast("tuple[Any, ...]", value)])
    return repr(value)


def _words(name: str, inside: Iterable[str]) -> str:
    return f"{name}({', '.join(inside)})"


def write(table: Path = TABLE) -> None:
    """Write the table anew; SystemExit, and no change of it, where a version must be raised first."""
    now = states_now()
    if found := faults(pinned(table), now):
        sys.exit("\n".join(found))
    table.write_text("".join(f"{name} {each.version} {each.digest}\n" for name, each in sorted(now.items())))


if __name__ == "__main__":
    write()
