"""What the shared tests ask of every agent: `tests/agents/<package>/cases.py` describes the agents of a package.

Shared tests take agents from here and name none, so a new agent only brings its own file of cases.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from support.claude_files import Gathered
from support.database_rows import replace_text
from turnlog.agents import agent
from turnlog.agents.base import Source, reads_rows
from turnlog.agents.built_in import BUILT_IN
from turnlog.server.sample import LOGS

FOLDER = Path(__file__).parents[1] / "agents"
DATA = Path(__file__).parents[1] / "data"

Lack = Literal[
    "lines of JSON",
    "message times",
    "models",
    "one message per record",
    "project in the path",
    "reasoning text",
    "result times",
    "run events",
    "session totals",
    "stop reasons",
    "subagent titles",
    "subagents",
    "times as text",
    "tokens per call",
    "working folder",
]

LACKS: Final[Mapping[Lack, str]] = {
    "lines of JSON": "a log has a JSON object on each line (tests/agents/test_contract.py)",
    "message times": "messages and calls have times (tests/agents/test_mapping.py)",
    "models": "answers name their model (tests/agents/test_mapping.py)",
    "one message per record": "the records of a message are whole lines of the log (tests/sync/test_all_agents.py)",
    "project in the path": "the folders of a log name the project (tests/logs/test_read_session.py)",
    "reasoning text": "the sample has the text of reasoning (tests/sync/test_all_agents.py)",
    "result times": "results have times, so calls have durations (tests/agents/test_mapping.py)",
    "run events": "recorded runs have an error, an interruption, a compaction or facts of the run"
    " (tests/agents/test_mapping.py)",
    "session totals": "where calls have no tokens, sessions have totals (tests/agents/test_mapping.py)",
    "stop reasons": "answers say why they ended (tests/sync/test_all_agents.py)",
    "subagent titles": "all sessions of subagents have a title (tests/sync/test_all_agents.py)",
    "subagents": "a recorded run has a subagent with a session of its own (tests/agents/test_mapping.py)",
    "times as text": "times are texts like 2026-11-20T09:00:00Z, not numbers (tests/agents/test_hostile.py)",
    "tokens per call": "answers have their own tokens (tests/agents/test_mapping.py)",
    "working folder": "the log says in which folder the agent worked (tests/agents/test_mapping.py)",
}
"""What a format may lack -> what the tests expect of one that has it, and the test."""


class Answer(NamedTuple):
    """An answer in the recorded runs, and its tokens by the script."""

    words: str
    """Words that only this answer has; none where no answer has tokens, but only the newest session."""
    input: int
    cache_read: int
    output: int
    reasoning: int


class CommandLine(NamedTuple):
    """A command line, and what it says."""

    line: str
    prompt: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    session: str | None = None


def copy_home(source: Path, folder: Path) -> None:
    """Copy a recorded home."""
    shutil.copytree(source, folder, dirs_exist_ok=True)


@dataclass(frozen=True, kw_only=True)
class AgentCase:
    """What is recorded of an agent, and what its format has. Only the first fields must be given."""

    name: str
    home: str
    """Its home, below the user's."""
    recorded: tuple[str, ...]
    """Folders of recorded homes below `tests/data`: a tour, and a subagent, an interruption or a compaction."""
    answer: Answer
    lacks: frozenset[Lack] = frozenset()
    """What the format does not have, of `LACKS`. The tests then check that turnlog invents none."""
    write_recorded: Callable[[Path, Path], None] = copy_home
    """Makes a home of what is recorded in a folder."""

    touch: str | None = None
    """Of an agent with a database: the SQL by which the program itself shows that it has changed rows of a session."""
    change_text: Callable[[Path, str, str], None] = replace_text
    """Puts one text in the place of another in the rows of its database."""
    empty: str | None = None
    """Of an agent with a database: the SQL that deletes all that was said, and leaves the sessions themselves."""
    said: str | None = None
    """Of an agent with a database: the table with what was said, if a session has many rows of it."""
    spoilt: tuple[tuple[str, str], ...] = ()
    """Of an agent with a database: statements after which it cannot be read, and what it then lacks."""
    strays: tuple[tuple[str, Mapping[str, int]], ...] = ()
    """Of an agent with a database: statements after which rows belong to no session -> how many of which column."""

    is_word: bool = False
    """Its name is also a word for something else, or a part of words that code has, so code may hold it."""

    sample_cwd: str = "/home/dev/sample"
    """Where the agent worked in its bundled sample."""
    sample_branch: str | None = None
    """The git branch in its sample, if the format has it."""
    sample_logs: str = "sessions"
    """The folder or file in a home without which it has no logs."""

    prompt: Callable[[str], Gathered] | None = None
    """What a log with one prompt of this text brings; None if a log cannot be that short."""
    first_line: bytes | None = None
    """A first record by which its logs are known, with `%s` for a text of any length."""
    call_ids: Callable[[dict[str, Any]], list[str]] | None = None
    """What names calls of the model in a record of the sample; None if nothing does."""
    repeats_records: bool = False
    """Some versions write a record twice."""

    commands: tuple[CommandLine, ...] = ()
    edit_tool: str | None = None
    """A tool in its sample whose result contains a patch."""
    subagent_tool: str | None = None
    """The tool in its sample that starts a subagent, which the page opens in place."""

    @property
    def package(self) -> str:
        """The package that reads its logs; agents with the same records share it."""
        return BUILT_IN[self.name].target.partition(":")[0]

    def write_home(self, recorded: str, folder: Path) -> Path:
        """Make a recorded home in a folder, and return the folder."""
        self.write_recorded(DATA / recorded, folder)
        return folder


def _cases_in(file: Path) -> tuple[AgentCase, ...]:
    # By its file: pytest has modules of its own for the folders between.
    spec = spec_from_file_location(f"cases_of_{file.parent.name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


def _found() -> dict[str, AgentCase]:
    described = [case for file in FOLDER.glob("*/cases.py") for case in _cases_in(file)]
    return {case.name: case for case in sorted(described, key=lambda case: case.name)}


CASES: dict[str, AgentCase] = _found()
"""Every agent by its name."""


def check_lack(name: str, thing: Lack, has_it: Iterable[bool]) -> None:
    """Fail with a sentence if an agent's logs have what its case says that they lack, or the other way round.

    Args:
        name: The agent.
        thing: What its format has or lacks.
        has_it: For each value that a test looks at, whether it is there.
    """
    values = list(has_it)
    case = f"tests/agents/{CASES[name].package.rpartition('.')[2]}/cases.py"
    if thing in CASES[name].lacks:
        assert not any(values), f"{case} says that {name} lacks {thing!r}, but its logs have it: {LACKS[thing]}"
    else:
        assert all(values), f"{name} has no {thing!r}, and {case} does not list it in `lacks`: {LACKS[thing]}"


def one_per_package() -> list[AgentCase]:
    """An agent of each package: the one whose name is the package's, or else the first."""
    own_first = sorted(CASES.values(), key=lambda case: not case.package.endswith(case.name.replace("-", "_")))
    return list({case.package: case for case in reversed(own_first)}.values())


def names(cases: list[AgentCase]) -> list[str]:
    """Their names, sorted."""
    return sorted(case.name for case in cases)


def reads_files(name: str) -> bool:
    """Whether the agent's sample consists of files of lines, not of rows in a database."""
    found = agent(name)
    return not any(reads_rows(found, source) for source in found.discover([LOGS / name]))


def has_lines(name: str) -> bool:
    """Whether the agent's sample has logs that grow line by line, and not only files that are rewritten whole."""
    return "lines of JSON" not in CASES[name].lacks and any(
        source.appendable for source in agent(name).discover([LOGS / name])
    )


def lines_of(source: Source) -> list[bytes]:
    """The lines of a source: those of a file, or those that its agent makes of rows."""
    found = agent(source.agent)
    if reads_rows(found, source):
        return list(found.read_rows(source, ()).lines)
    return Path(source.path).read_bytes().splitlines(keepends=True)
