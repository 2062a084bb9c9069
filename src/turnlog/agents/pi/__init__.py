"""pi and the programs that write its logs: where they are and how they are read.

`docs/formats/pi.md` has the evidence; the pages of the other programs say in what they differ. What reads the logs is
imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Final

import msgspec

from turnlog import paths
from turnlog.agents.base import Agent, Colour, Detection, Fold, Source
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import SESSION, CommandForm, words

NAME: Final = "pi"

HOME_FOLDERS: Final = {
    ".pi": NAME,
    ".omp": "oh-my-pi",
    ".prime": "prime-agent",
    ".omo": "omo",
    ".stepcode": "stepcode",
}
"""The folder in the user's home -> the program that writes there."""


def owner_of(folder: PurePath) -> str | None:
    """The program of the family whose home contains a folder, or is it; None if no name in the path says so.

    The records are the same in all homes. A home may also be a folder with the name of its program, as in the sample.
    """
    below = ""
    for place in (folder, *folder.parents):
        if place.name in HOME_FOLDERS:
            return HOME_FOLDERS[place.name]
        if place.name in HOME_FOLDERS.values() and below in ("", "sessions"):
            return place.name
        below = place.name
    return None


def _command(program: str, *packages: str) -> CommandForm:
    return CommandForm(
        program=program,
        packages=packages,
        # The time behind an id that is not unique is turnlog's, and what may follow it.
        branch=r"@\d{4}-\d\d-\d\dT[\dT-]+Z(?:-[0-9a-f]{8})?",
        resume=("--session",),
        prompted=("-p", "--session", SESSION),
        model=words("--model"),
        system_prompt=words("--system-prompt"),
        session=words("--session"),
        other=words(
            "--provider --api-key --append-system-prompt --mode --session-id --fork --session-dir --name -n --models",
            "--tools -t --exclude-tools -xt --thinking --extension -e --skill --prompt-template --theme --use-theme",
            "--export --tui-mode",
        ),
    )


def _with_session(source: Source, session_id: str | None) -> Source:
    if source.session_id == session_id:
        return source
    return msgspec.structs.replace(source, session_id=session_id)


class Pi(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "pi"
    colour = Colour(light="#3b8185", dark="#6ac9ce")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    log_folders = ("sessions",)
    tells_sessions_apart = True
    command = _command("pi", "@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent")
    handoff: str | None = "turnlog.agents.pi.handoff:WRITER"

    def roots(self) -> Sequence[Path]:
        """The homes that contain logs, and the folder of sessions that the environment names."""
        named = [folder for folder in self._session_folders() if folder.is_dir()]
        return list(dict.fromkeys([*super().roots(), *named]))

    def _session_folders(self) -> Sequence[Path]:
        """What the program's own variable for the folder of sessions names, if it has one."""
        return [folder for rule in BUILT_IN[self.name].others for folder in paths.folders(rule)]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """See `Agent.discover`. Logs that name the same session are told apart over all homes."""
        return self._told_apart(self.roots() if roots is None else roots)

    def settled(self, found: Sequence[Source], known: Mapping[str, str | None]) -> Iterable[Source]:
        """See `Agent.settled`."""
        if all(source.path in known for source in found):
            return [_with_session(source, known[source.path]) for source in found]
        from turnlog.agents.pi.sources import told_apart

        told = told_apart(map(self._with_own_id, found), known)
        return [_with_session(source, known.get(source.path, source.session_id)) for source in told]

    def _with_own_id(self, source: Source) -> Source:
        """A source with the id of its own log, where it may have been told apart from others."""
        if "@" not in (source.session_id or ""):
            return source
        from turnlog.agents.pi.sources import log_source

        return _with_session(source, log_source(self.name, Path(source.root), Path(source.path)).session_id)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Logs of sessions and of subagents below a home.

        Below a folder that is no home, a file whose name is nothing but an id is opened: other programs use such names.
        """
        return self._told_apart((root,))

    def _told_apart(self, roots: Iterable[Path]) -> Iterator[Source]:
        own = [root for root in roots if self._is_read(root)]
        if not own:
            return iter(())
        from turnlog.agents.pi.sources import logs_below, told_apart

        found = (logs_below(self.name, root, is_own=self._is_own(root)) for root in own)
        return told_apart(chain.from_iterable(found))

    def _is_own(self, root: Path) -> bool:
        return root in self.home_folders() or root in self._session_folders()

    def _is_read(self, root: Path) -> bool:
        # The homes look the same: of any other folder only its path says whose it is.
        return self._is_own(root) or (owner_of(root) or NAME) == self.name

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log begins with a `session` record; the folder says which program of the family wrote it."""
        from turnlog.agents.pi.sources import detect_log

        return detect_log(self.name, path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log."""
        from turnlog.agents.pi.fold import PiFold

        return PiFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`details` of the record with the call's result."""
        from turnlog.agents.pi.messages import structured_result

        return structured_result(record, tool_call_id)


class OhMyPi(Pi):
    """See `turnlog.agents.base.Agent`."""

    name = "oh-my-pi"
    display_name = "oh-my-pi"
    colour = Colour(light="#885629", dark="#e1ad63")
    # Its variable is PI_CODING_AGENT_DIR too; a folder named there counts as pi's.
    homes = BUILT_IN["oh-my-pi"].homes
    command = _command("omp", "@oh-my-pi/pi-coding-agent")
    handoff = None


class PrimeAgent(Pi):
    """See `turnlog.agents.base.Agent`."""

    name = "prime-agent"
    display_name = "Prime Agent"
    colour = Colour(light="#4c673e", dark="#93c47d")
    homes = BUILT_IN["prime-agent"].homes
    command = _command("prime-agent")
    handoff = None


class Omo(Pi):
    """See `turnlog.agents.base.Agent`."""

    name = "omo"
    display_name = "omo"
    colour = Colour(light="#7d5ba6", dark="#b89fcc")
    homes = BUILT_IN["omo"].homes
    command = None
    handoff = None


class StepCode(Pi):
    """See `turnlog.agents.base.Agent`."""

    name = "stepcode"
    display_name = "StepCode"
    colour = Colour(light="#09597d", dark="#6fb0c0")
    homes = BUILT_IN["stepcode"].homes
    command = None
    handoff = None
