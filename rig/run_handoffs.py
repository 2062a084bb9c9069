"""Hands sessions of every agent to the real agents, and says in a table what they carried, lost and accepted.

`make rig` runs it without a network. Exit code 0: nothing is missing; 1: something is; 2: wrong arguments. All pairs
take hours: with `--results` each one is kept as it ends, and the next run goes on after the last.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from clis import CLIS, TAKERS, Cli
from handoffs import Verdict, hand_over
from recordings import record
from run import MODULES, Trouble, launch, prepare, version
from served import AgentServer

from turnlog.errors import TurnlogError
from turnlog.handoff import HandoffPlan
from turnlog.model import Session
from turnlog.server.sample import sample_roots
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

SECONDS = 300
"""For one pair, whatever its agent does."""


class Pair(NamedTuple):
    """A session, and the agent that goes on with it."""

    target: str
    version: str
    agent: str
    """The one that the session is from."""
    session: str


@dataclass
class Results:
    """The verdicts on all pairs, also of earlier runs."""

    path: Path | None
    """JSON lines, one a pair; the last one counts."""
    verdicts: dict[Pair, Verdict] = field(default_factory=dict[Pair, Verdict])

    def read(self) -> None:
        """Take what earlier runs found. A line that was being written when the run ended is left out."""
        lines = self.path.read_text().splitlines() if self.path is not None and self.path.exists() else []
        for line in lines:
            try:
                fields = json.loads(line)
            except ValueError:
                continue
            pair = Pair(*(fields.pop(name) for name in Pair._fields))
            self.verdicts[pair] = Verdict(**fields | {"models": set(fields["models"])})

    def add(self, pair: Pair, verdict: Verdict) -> None:
        self.verdicts[pair] = verdict
        if self.path is not None:
            line = json.dumps(pair._asdict() | asdict(verdict) | {"models": sorted(verdict.models)})
            with self.path.open("a") as file:
                file.write(f"{line}\n")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Let real agents go on with sessions (docs/how-to/rig.md).")
    parser.add_argument("names", nargs="*", metavar="TARGET", help=", ".join(cli.name for cli in TAKERS))
    parser.add_argument("--from", dest="origin", metavar="AGENT", help="only sessions of this agent")
    parser.add_argument("--session", metavar="TEXT", help="only sessions with this text in their id")
    parser.add_argument("--all", action="store_true", help="all sessions, and not only the largest of each agent")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep what the agents left, for the tests")
    parser.add_argument("--logs", action="append", type=Path, metavar="HOME", help="homes of agents; default: samples")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep results here; pairs in it are not run again")
    parser.add_argument("--again", action="store_true", help="run those pairs of --results again that failed")
    parser.add_argument("--server", action="store_true", help="one server of OpenCode and Kilo CLI for all sessions")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one pair (default: %(default)s)")
    chosen = parser.parse_args(words)
    # `make rig` gives both programs the same names, and not every agent takes sessions.
    if strangers := set(chosen.names) - {cli.name for cli in (*CLIS, *TAKERS)}:
        parser.error(f"no such agent: {', '.join(sorted(strangers))}")
    # The programs are looked for where the rig has installed them.
    os.environ["PATH"] = f"{MODULES / '.bin'}:{os.environ['PATH']}"
    targets = [cli for cli in TAKERS if cli.name in chosen.names or (not chosen.names and is_installed(cli))]
    results = Results(chosen.results)
    results.read()
    with tempfile.TemporaryDirectory() as folder:
        store_path = Path(folder) / "store.db"
        sync(store_path, roots=chosen.logs or sample_roots())
        sessions = choose(store_path, chosen.origin, chosen.session, every=chosen.all)
        for cli in targets:
            with ExitStack() as stack:
                judge = Judge(cli, store_path, Path(folder) / cli.name, chosen.record, chosen.seconds)
                if chosen.server and cli.serve:
                    judge.server = stack.enter_context(AgentServer(cli, Path(folder) / f"{cli.name}-served"))
                for session in sessions:
                    pair = Pair(cli.name, version(cli), session.agent, session.id)
                    known = results.verdicts.get(pair)
                    if known is None or (chosen.again and known.findings):
                        results.add(pair, judge.verdict(session))
    for pair, verdict in results.verdicts.items():
        for finding in verdict.findings:
            print(f"{pair.session} -> {pair.target}: {finding}", flush=True)
    differing = sum(print_models(name, results) for name in sorted({pair.target for pair in results.verdicts}))
    print_pairs(results)
    return 1 if differing or any(verdict.findings for verdict in results.verdicts.values()) else 0


def print_models(name: str, results: Results) -> int:
    """Say which model the agent asked; 1 if it was not the same one whatever session it went on with, else 0.

    In its own sessions an agent may go on with their model.
    """
    verdicts = [each for pair, each in results.verdicts.items() if name == pair.target != pair.agent]
    models = sorted({model for each in verdicts for model in each.models})
    print(f"{name} asked {' and '.join(models) or 'no model'}", flush=True)
    return len(models) > 1


def is_installed(cli: Cli) -> bool:
    """Whether the agent's program is there: `make rig` does not install all of them."""
    return (MODULES / ".bin" / cli.program).exists()


def choose(store_path: Path, origin: str | None, text: str | None, *, every: bool) -> list[Session]:
    """The sessions to hand over: of each agent the one with the most calls, or all."""
    with open_store(store_path) as store:
        found = store.sessions(SessionFilter(agent=origin), limit=1000).items
    found = tuple(session for session in found if text is None or text in session.id)
    if every or text is not None:
        return sorted(found, key=lambda session: session.id)
    largest = {
        session.agent: session
        for session in sorted(found, key=lambda session: (session.counts.tool_calls, session.counts.messages))
    }
    return [largest[name] for name in sorted(largest)]


class Judge:
    """Lets one agent go on with sessions, each in a HOME and a store of its own."""

    def __init__(self, cli: Cli, store_path: Path, template: Path, recordings: Path | None, seconds: float) -> None:
        self._cli = cli
        self._store_path = store_path
        self._template = template
        """HOME as the agent makes it: OpenCode needs longer for that than for an answer."""
        self._recordings = recordings
        self._seconds = seconds
        self.server: AgentServer | None = None
        """That gets the prompts, in its own HOME."""

    def verdict(self, session: Session) -> Verdict:
        """How the session fared. Whatever happens to it, the next one is run."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            try:
                verdict = self._go_on(session, Path(name), began + self._seconds)
            except Exception as error:
                verdict = Verdict(findings=[str(error) if isinstance(error, TurnlogError | Trouble) else repr(error)])
        verdict.seconds = round(time.monotonic() - began, 1)
        return verdict

    def _go_on(self, session: Session, folder: Path, end: float) -> Verdict:
        cli = self._cli
        home, own = folder / "home", folder / "store.db"

        def start(place: Path, url: str, arguments: Sequence[str]) -> None:
            left = max(end - time.monotonic(), 1)
            if self.server is not None:
                self.server.prompt(url, arguments, left)
                return
            prepare(cli, place, url)
            launch(cli, place, url, list(arguments), left)

        def keep(planned: HandoffPlan, request: list[tuple[str, str]]) -> None:
            record(planned, home, version(cli), request, (self._recordings or Path()) / cli.name / session.agent)

        if self.server is not None:
            home = self.server.home
        elif cli.makes_home and not self._template.exists():
            start(home, "http://127.0.0.1:1", cli.makes_home)
            shutil.copytree(home, self._template, symlinks=True)
        elif cli.makes_home:
            shutil.copytree(self._template, home, symlinks=True)
        (home / "work").mkdir(parents=True, exist_ok=True)
        shutil.copy(self._store_path, own)
        return hand_over(
            cli,
            own,
            session.id,
            home,
            lambda url, arguments: start(home, url, arguments),
            keep if self._recordings else None,
        )


def print_pairs(results: Results) -> None:
    """The pairs: items carried / reported as lost / sessions accepted of all."""
    targets = sorted({(pair.target, pair.version) for pair in results.verdicts})
    print("| from | " + " | ".join(f"{name} {number}" for name, number in targets) + " |")
    print("|---" * (len(targets) + 1) + "|")
    for origin in sorted({pair.agent for pair in results.verdicts}):
        of_origin = {pair: each for pair, each in results.verdicts.items() if pair.agent == origin}
        cells = [
            cell([each for pair, each in of_origin.items() if (pair.target, pair.version) == target])
            for target in targets
        ]
        print(f"| {origin} | " + " | ".join(cells) + " |")


def cell(verdicts: Sequence[Verdict]) -> str:
    carried, lost = sum(each.carried for each in verdicts), sum(each.lost for each in verdicts)
    accepted = sum(not each.findings for each in verdicts)
    return f"{carried} / {lost} / {accepted} of {len(verdicts)}" if verdicts else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
