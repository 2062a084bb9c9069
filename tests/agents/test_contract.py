"""What every agent must fulfil, whatever its logs look like, shown on its bundled sample.

An agent's own tests show how its logs look. These here fail until it is registered, documented, recorded and bundled.
What has nothing to do with the registry is also checked of the agent in `examples/agent-plugin`, which people copy.
"""

from __future__ import annotations

import shutil
import struct
import zlib
from importlib import metadata
from itertools import combinations
from math import cbrt, dist
from pathlib import Path

import pytest

from support.agent_cases import CASES
from support.agent_example import EXAMPLE, lacks_of, sample_of
from support.claude_files import gather
from support.environment import variables_of
from turnlog.agents import agent, agents, detect, load_target
from turnlog.agents.base import Agent, RowAgent, Source, SourceKind
from turnlog.agents.built_in import BUILT_IN, may_be_here
from turnlog.agents.changes import Changes, LineCounts
from turnlog.model import FilePart, ToolCallPart, ToolKind
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

ROOT = Path(__file__).parent.parent.parent
NAMES = sorted(BUILT_IN)
GARBAGE = (b"\xff\xfe\x00", b"{", b"[1, 2]", b'"text"', b"null", b"{}", b'{"type": 7}', b'{"type": {}, "message": []}')

every_agent = pytest.mark.parametrize("name", [*NAMES, EXAMPLE])
every_built_in = pytest.mark.parametrize("name", NAMES)


def sources(name: str) -> list[Source]:
    return list(agent(name).discover([sample_of(name)]))


def logs(name: str) -> list[Source]:
    return [source for source in sources(name) if source.appendable]


def conversations(name: str) -> list[Source]:
    """Logs, and files with a whole session that are rewritten."""
    return [source for source in sources(name) if source.kind in (SourceKind.SESSION, SourceKind.SUBAGENT)]


def log_of(found: Agent, source: Source) -> bytes:
    """The lines of a source: a file's, or those that its agent makes of rows."""
    if isinstance(found, RowAgent) and found.holds_rows(source):
        return b"".join(found.read_rows(source, ()).lines)
    return Path(source.path).read_bytes()


def file_of(source: Source) -> Path:
    """The file that a source is or is part of."""
    return Path(source.path.partition("#")[0])


def feeds(found: Agent, source: Source, pieces: list[bytes]) -> tuple[list[Changes], bytes]:
    """The changes of each piece, read by a fold that is made anew from the state before; and the last state."""
    changes: list[Changes] = []
    state, offset = None, 0
    for piece in pieces:
        fold = found.fold(source, state)
        changes.append(fold.feed(piece, offset))
        state, offset = fold.state(), offset + len(piece)
    assert state is not None
    return changes, state


# -- that it is registered, documented and recorded


@every_built_in
def test_it_is_there_by_its_name(name: str) -> None:
    found = agent(name)
    assert isinstance(found, Agent)
    assert found.name == name
    assert type(found) is load_target(BUILT_IN[name].target)


@every_built_in
def test_it_is_there_also_when_nothing_is_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        return []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    assert name in [found.name for found in agents()]


@every_built_in
def test_its_format_has_a_page(name: str) -> None:
    assert "\n## Turns\n" in (ROOT / f"docs/formats/{name}.md").read_text()


@pytest.mark.parametrize("folder", ["tests/agents", "tests/data"])
@every_built_in
def test_it_has_recorded_logs_and_tests_of_its_own(name: str, folder: str) -> None:
    """Agents that share a package share its tests, too."""
    package = type(agent(name)).__module__.rpartition(".")[2]
    assert any((ROOT / folder / package).iterdir())


# -- how it is shown and run


@every_agent
def test_its_mark_is_seen_on_both_themes(name: str) -> None:
    """3:1 and more, on the lightest and the darkest surface of the page (web/src/design/tokens.css)."""
    colour = agent(name).colour
    assert colour is not None
    assert contrast(colour.light, "#ffffff") >= 3
    assert contrast(colour.dark, "#262624") >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_agents_look_alike(theme: str) -> None:
    """Neighbours in a list can be told apart: at least 0.045 in Oklab, where about 0.02 is just seen."""
    colours = {each.name: oklab(getattr(each.colour, theme)) for each in agents()}
    near = [pair for pair in combinations(colours, 2) if dist(*map(colours.__getitem__, pair)) < 0.045]
    assert near == []


def oklab(colour: str) -> tuple[float, float, float]:
    """The coordinates of Oklab (Ottosson 2020)."""
    red, green, blue = linear(colour)
    long = cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.1."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(colour: str) -> list[float]:
    """Red, green and blue as amounts of light."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]


@every_agent
def test_what_starts_it_for_the_page_is_there(name: str, tmp_path: Path) -> None:
    target = agent(name).interactive_command
    if target is not None:
        command = load_target(target).with_own_settings(tmp_path)
        assert (command.agent, command.cwd) == (name, tmp_path)


@every_agent
def test_a_plugin_is_known_by_its_first_line(name: str) -> None:
    hooks = agent(name).hooks
    if hooks is not None and hooks.plugin is not None:
        assert hooks.plugin.read_text().startswith("// turnlog's plugin")
        assert '"{{FOLDER}}"' in hooks.plugin.read_text()


# -- where its logs are


@every_built_in
def test_the_pictures_of_its_sample_can_be_shown(name: str, tmp_path: Path) -> None:
    """Whoever looks at a sample in the browser sees them: a PNG has all of its pixels."""
    sync(tmp_path / "store.db", roots=[sample_of(name)], agents=[agent(name)])
    with open_store(tmp_path / "store.db") as store:
        sessions = store.sessions(SessionFilter(subagents=True), limit=100).items
        for part in (part for one in sessions for placed in store.messages(one.id) for part in placed.message.parts):
            if isinstance(part, FilePart) and part.media_type == "image/png" and part.url is None:
                # Of one outside of the log, nothing but its place is known.
                data = part.data if part.blob is None else store.blob(part.blob.sha256).data
                assert not data or has_all_pixels(data), part.id


def has_all_pixels(png: bytes) -> bool:
    width, height = struct.unpack(">II", png[16:24])
    # By the kind of colours: grey, RGB, of an index, grey with transparency, RGB with transparency.
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[png[25]]
    start, data = 8, b""
    while start < len(png):
        (size,) = struct.unpack(">I", png[start : start + 4])
        data += png[start + 8 : start + 8 + size] if png[start + 4 : start + 8] == b"IDAT" else b""
        start += 12 + size
    return start == len(png) and len(zlib.decompress(data)) == height * (1 + (width * samples * png[24] + 7) // 8)


@every_agent
def test_its_sample_holds_a_session(name: str) -> None:
    found = sources(name)
    assert SourceKind.SESSION in {source.kind for source in found}
    assert {source.agent for source in found} == {name}
    assert {source.root for source in found} == {str(sample_of(name))}
    assert all(Path(source.path).is_relative_to(source.root) for source in found)


@every_agent
def test_a_home_that_is_not_there_has_no_logs(name: str, tmp_path: Path) -> None:
    assert list(agent(name).discover([tmp_path / "missing"])) == []
    assert list(agent(name).discover([tmp_path])) == []


@every_built_in
def test_it_is_looked_for_where_its_homes_are(name: str, home: Path) -> None:
    """Each folder in which its class looks for a home is one for which the registry imports the class."""
    for folder in agent(name).home_folders():
        assert name not in may_be_here()
        folder.mkdir(parents=True)
        assert name in may_be_here()
        shutil.rmtree(home)
        home.mkdir()


@every_built_in
def test_it_is_looked_for_where_variables_say(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = [each for each, case in CASES.items() if case.package == CASES[name].package]
    pages = "".join((ROOT / f"docs/formats/{each}.md").read_text() for each in package)
    for variable in variables_of(BUILT_IN[name]):
        assert f"`{variable}`" in pages
        with monkeypatch.context() as patch:
            patch.setenv(variable, str(tmp_path / "elsewhere"))
            assert name in may_be_here()


@every_agent
def test_an_empty_home_folder_has_no_home_of_it(name: str, home: Path) -> None:
    assert list(agent(name).roots()) == []
    assert list(agent(name).discover()) == []


@every_agent
def test_its_logs_are_known_by_what_is_in_them(name: str) -> None:
    """R-S21"""
    for source in conversations(name):
        detection = detect(file_of(source))
        assert detection.agent == name
        assert detection.version


# -- how they are read


@every_agent
def test_every_line_is_accounted_for(name: str) -> None:
    """R-S34"""
    for source in logs(name):
        data = log_of(agent(name), source)
        [changes], _ = feeds(agent(name), source, [data])
        counted = [getattr(changes.counts, field) for field in LineCounts.__struct_fields__]
        assert sum(counted) == data.count(b"\n")
        assert changes.diagnostics == []


@every_agent
def test_ids_name_the_agent_and_fit_into_an_address(name: str) -> None:
    for source in conversations(name):
        [changes], _ = feeds(agent(name), source, [log_of(agent(name), source)])
        assert changes.messages
        sessions = set(changes.sessions) | {change.placement.session_id for change in changes.messages}
        assert {id for id in sessions if not id.startswith(f"{name}:") or "/" in id} == set()


@every_agent
def test_line_by_line_gives_what_the_whole_gives(name: str) -> None:
    """The same history, and the same state to go on from."""
    for source in logs(name):
        data = log_of(agent(name), source)
        whole, state = feeds(agent(name), source, [data])
        parts, last = feeds(agent(name), source, data.splitlines(keepends=True))
        assert gather(*parts).as_json() == gather(*whole).as_json()
        assert last == state


@every_agent
def test_its_tools_have_kinds(name: str) -> None:
    """R-C8: what edits a file and what runs a command is known, or `turnlog files` stays empty."""
    calls: list[ToolCallPart] = []
    for source in conversations(name):
        [changes], _ = feeds(agent(name), source, [log_of(agent(name), source)])
        for change in changes.messages:
            calls += [part for part in change.message.parts if isinstance(part, ToolCallPart)]
    assert {call.kind for call in calls} - {ToolKind.OTHER}


@pytest.mark.parametrize("garbage", GARBAGE)
@every_agent
def test_a_damaged_line_changes_nothing_else(name: str, garbage: bytes) -> None:
    for source in logs(name)[: int("lines of JSON" not in lacks_of(name))]:
        data = log_of(agent(name), source)
        [whole], _ = feeds(agent(name), source, [data])
        [damaged], _ = feeds(agent(name), source, [data + garbage + b"\n"])
        assert len(damaged.messages) == len(whole.messages)
        reported = len(damaged.diagnostics) + len(damaged.events) + damaged.counts.unreadable
        assert reported > len(whole.events)


@every_agent
def test_what_is_no_session_at_all_raises_nothing(name: str) -> None:
    """Also where a session is one file that is rewritten whole, and not lines."""
    source = conversations(name)[0]
    for garbage in GARBAGE:
        [changes], _ = feeds(agent(name), source, [garbage + b"\n"])
        assert changes.messages == []


@every_agent
def test_its_top_folder_may_be_a_link_and_nothing_below_it_but_a_database(name: str, tmp_path: Path) -> None:
    """Logs on another disk are read; whoever may write among them cannot name files elsewhere."""
    home, disk = tmp_path / "home", tmp_path / "disk"
    shutil.copytree(sample_of(name), home)
    found = agent(name)
    before = [source.path for source in found.discover([home])]
    tops = [home / folder for folder in found.log_folders if (home / folder).is_dir()]
    for number, top in enumerate(tops):
        shutil.move(top, disk / str(number))
        top.symlink_to(disk / str(number))
    assert [source.path for source in found.discover([home])] == before
    for number, file in enumerate([each for top in disk.glob("*") for each in top.rglob("*") if each.is_file()]):
        shutil.move(file, tmp_path / f"moved{number}")
        file.symlink_to(tmp_path / f"moved{number}")
    below = [each for each in found.discover([home]) if any(Path(each.path).is_relative_to(top) for top in tops)]
    linked = {file_of(source) for source in below}
    assert {file.suffix for file in linked} <= {".db", ".sqlite", ".vscdb"}
