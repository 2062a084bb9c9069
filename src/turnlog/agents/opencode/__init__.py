"""OpenCode: where its histories are, how they are read, and how it is run (`docs/formats/opencode.md`).

What reads its logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from turnlog import paths
from turnlog.agents.base import (
    Colour,
    Detection,
    Fold,
    HookSettings,
    McpSettings,
    RowAgent,
    RowUpdate,
    Source,
    SourceKind,
    TurnMarker,
    Version,
    is_database_itself,
)
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import SESSION, CommandForm, words
from turnlog.agents.files import holds_file
from turnlog.paths import Folders

NAME = "opencode"


class Program(NamedTuple):
    """A program of the family: OpenCode, and those that were made from it and keep its tables."""

    agent: str
    database: str
    """How the names of its databases begin; `-` and a release channel may follow."""

    @property
    def database_variable(self) -> str | None:
        """The environment variable that names a database; None if none is known."""
        return next((each for each in BUILT_IN[self.agent].variables if each.endswith("_DB")), None)


PROGRAMS: Final = (
    Program(NAME, "opencode"),
    Program("kilo", "kilo"),
    Program("mimo-code", "mimocode"),
    Program("icodemate", "icodemate"),
)

_HOMES = BUILT_IN[NAME].homes
"""The same on every platform."""


def _command(program: str, package: str) -> CommandForm:
    """Of 1.18."""
    return CommandForm(
        program=program,
        resume=("--session",),
        prompted=("run", "--session", SESSION),
        packages=(package,),
        subcommands=(("run",), ()),
        joins_words=True,
        model=words("-m --model"),
        session=words("-s --session"),
        other=words(
            "--agent --format -f --file --title --attach --port --variant --log-level --dir --command",
            "--prompt -p --password -u --username",
        ),
    )


_TURN_MARKERS: Final[Mapping[str, TurnMarker]] = {
    "permission.asked": "asks",
    "permission.updated": "asks",
    "session.idle": "end",
}
"""Events of its server that ask the user, and those that say it is idle. Its database records neither."""

_HOOKS = HookSettings(
    home=Folders(("$XDG_CONFIG_HOME/opencode",), variable="OPENCODE_CONFIG_DIR"),
    file="plugin/turnlog.js",
    project_file=".opencode/plugin/turnlog.js",
    plugin=Path(__file__).with_name("plugin.js"),
    note="At its next start OpenCode installs its own package for plugins, once, and waits for the network.",
)

_MCP = McpSettings(
    home=_HOOKS.home,
    file="opencode.json",
    project_file="opencode.json",
    servers="mcp",
    entry={"type": "local", "enabled": True},
    joins_arguments=True,
)

_KILO_MCP = McpSettings(
    home=Folders(("$XDG_CONFIG_HOME/kilo",), variable="KILO_CONFIG_DIR"),
    file="kilo.json",
    project_file="kilo.json",
    servers="mcp",
    entry={"type": "local", "enabled": True},
    joins_arguments=True,
)


class OpenCode(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    program = PROGRAMS[0]
    name = NAME
    display_name = "OpenCode"
    colour = Colour(light="#7a4fc0", dark="#b79af0")
    parser_version = 21
    homes = _HOMES
    command = _command("opencode", "opencode-ai")
    turn_markers: Mapping[str, TurnMarker] = _TURN_MARKERS
    hooks = _HOOKS
    mcp = _MCP
    handoff: str | None = "turnlog.agents.opencode.handoff:OPENCODE"

    def roots(self) -> Sequence[Path]:
        """The data folders that hold histories, and the folders of databases that the environment names."""
        named = [path.parent for path in self._named_databases()]
        homes = [home for home in dict.fromkeys((*self.home_folders(), *named)) if home in named or home.is_dir()]
        if not homes:
            return []
        # Every command looks for homes: on a machine without OpenCode it must not pay for what reads its histories.
        from turnlog.agents.opencode.sources import is_home

        return [home for home in homes if home in named or is_home(home, self.program)]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """A source for each session and each spilled output, and one for each database."""
        if roots is not None:
            yield from super().discover(roots)
            return
        named = self._named_databases()
        for root in self.roots():
            from turnlog.agents.opencode.sources import find_sources

            yield from find_sources(root, [path for path in named if path.parent == root], self.program)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The same of one home, without databases that only the environment names."""
        from turnlog.agents.opencode.sources import find_sources

        return find_sources(root, [], self.program)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has the tables, a file of the storage its place, an export its `info` and `messages`."""
        from turnlog.agents.opencode.sources import detect_file

        return detect_file(path, head, self.program)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's rows, of a database itself, of a spilled output, of a stream or of an export."""
        if is_database_itself(source):
            from turnlog.agents.strays import StraysFold

            return StraysFold()
        if source.kind is SourceKind.SPILL:
            from turnlog.agents.opencode.sources import OutputFold

            return OutputFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.hook_events import HookFold
            from turnlog.agents.opencode.tools import HOOK_FORMAT

            return HookFold(HOOK_FORMAT, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.opencode.printed import OpenCodeStreamFold

            return OpenCodeStreamFold(source)
        if not source.appendable:
            from turnlog.agents.opencode.printed import OpenCodeExportFold

            return OpenCodeExportFold(source)
        from turnlog.agents.opencode.fold import OpenCodeFold

        return OpenCodeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`state.metadata` of the call's part."""
        from turnlog.agents.opencode.printed import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """All but exports and spilled outputs."""
        from turnlog.agents.opencode.sources import holds_rows

        return holds_rows(source)

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.opencode.sources import sources_at

        return sources_at(path, root, self._named_databases(), self.program)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.opencode.sources import row_version

        return row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.opencode.sources import read_rows

        return read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.opencode.row_log import restore_rows

        return restore_rows(source, log, to)

    def _named_databases(self) -> list[Path]:
        """The databases that the environment names and that are there; one in memory is nowhere."""
        variable = self.program.database_variable
        named = paths.file_named_by(variable, self.home_folders()[0]) if variable is not None else None
        if named is None or named.name == ":memory:" or not holds_file(named.parent, named.name):
            return []
        return [named]


class _Descendant(OpenCode):
    """A program that was made from OpenCode, with OpenCode's tables in its own folder."""

    turn_markers: Mapping[str, TurnMarker] = {}  # They come from OpenCode's plugin, which no other program has
    hooks = None
    mcp = None
    handoff = None

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has a table of the program's own, or its name. An export and a stream look like OpenCode's."""
        from turnlog.agents.databases import is_database

        return super().detect(path, head) if is_database(head) else Detection(reason="no database")


class Kilo(_Descendant):
    """Kilo CLI (`docs/formats/kilo.md`)."""

    program = PROGRAMS[1]
    name = "kilo"
    display_name = "Kilo CLI"
    colour = Colour(light="#7d7400", dark="#e3d94a")
    parser_version = OpenCode.parser_version + 1
    homes = BUILT_IN["kilo"].homes
    command = _command("kilo", "@kilocode/cli")
    mcp = _KILO_MCP
    handoff = "turnlog.agents.opencode.handoff:KILO"


class MiMoCode(_Descendant):
    """MiMo Code (`docs/formats/mimo-code.md`)."""

    program = PROGRAMS[2]
    name = "mimo-code"
    display_name = "MiMo Code"
    colour = Colour(light="#b01003", dark="#f3821d")
    homes = BUILT_IN["mimo-code"].homes
    command = _command("mimo", "@mimo-ai/cli")

    def home_folders(self) -> Sequence[Path]:
        """`data` in the folder that `MIMOCODE_HOME` names; without it, `mimocode` among the user's data."""
        named = paths.file_named_by("MIMOCODE_HOME", paths.home())
        return super().home_folders() if named is None else [named / "data"]


class ICodeMate(_Descendant):
    """ICodeMate (`docs/formats/icodemate.md`)."""

    program = PROGRAMS[3]
    name = "icodemate"
    display_name = "ICodeMate"
    colour = Colour(light="#0f7490", dark="#63d6f1")
    homes = BUILT_IN["icodemate"].homes
    command = None
