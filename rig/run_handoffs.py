"""Hands sessions of every agent to the real agents, and says in a table what they carried, lost and accepted.

`make rig` runs it without a network. Exit code 0: nothing is missing; 1: something is; 2: wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from clis import CLIS, TAKERS, Cli
from handoffs import Verdict, hand_over
from recordings import record
from run import MODULES, Trouble, launch, prepare, version

from turnlog.errors import TurnlogError
from turnlog.handoff import HandoffPlan
from turnlog.model import Session
from turnlog.server.sample import sample_roots
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Let real agents go on with sessions (docs/how-to/rig.md).")
    parser.add_argument("names", nargs="*", metavar="TARGET", help=", ".join(cli.name for cli in TAKERS))
    parser.add_argument("--from", dest="origin", metavar="AGENT", help="only sessions of this agent")
    parser.add_argument("--session", metavar="TEXT", help="only sessions with this text in their id")
    parser.add_argument("--all", action="store_true", help="all sessions, and not only the largest of each agent")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep what the agents left, for the tests")
    parser.add_argument("--logs", action="append", type=Path, metavar="HOME", help="homes of agents; default: samples")
    chosen = parser.parse_args(words)
    # `make rig` gives both programs the same names, and not every agent takes sessions.
    if strangers := set(chosen.names) - {cli.name for cli in (*CLIS, *TAKERS)}:
        parser.error(f"no such agent: {', '.join(sorted(strangers))}")
    # The programs are looked for where the rig has installed them.
    os.environ["PATH"] = f"{MODULES / '.bin'}:{os.environ['PATH']}"
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        store_path = Path(folder) / "store.db"
        sync(store_path, roots=chosen.logs or sample_roots())
        sessions = choose(store_path, chosen.origin, chosen.session, every=chosen.all)
        targets = [cli for cli in TAKERS if cli.name in chosen.names or (not chosen.names and is_installed(cli))]
        table: dict[str, dict[str, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
        for cli in targets:
            for session in sessions:
                verdict = judge(cli, store_path, session, chosen.record)
                table[session.agent][cli.name].append(verdict)
                for finding in verdict.findings:
                    failures += 1
                    print(f"{session.id} -> {cli.name}: {finding}", flush=True)
            failures += print_models(cli, [verdict for each in table.values() for verdict in each[cli.name]])
        print_pairs(table, targets)
    return 1 if failures else 0


def print_models(cli: Cli, verdicts: list[Verdict]) -> int:
    """Say which model the agent asked; 1 if it was not the same one whatever session it went on with, else 0."""
    models = sorted({model for verdict in verdicts for model in verdict.models})
    print(f"{cli.name} asked {' and '.join(models) or 'no model'}", flush=True)
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


def judge(cli: Cli, store_path: Path, session: Session, recordings: Path | None) -> Verdict:
    """One session and one target, in a HOME and a store of their own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        home, own = Path(name) / "home", Path(name) / "store.db"
        home.mkdir()
        shutil.copy(store_path, own)
        (home / "work").mkdir()

        def start(url: str, arguments: Sequence[str]) -> None:
            prepare(cli, home, url)
            launch(cli, home, url, list(arguments))

        def keep(planned: HandoffPlan, request: list[tuple[str, str]]) -> None:
            folder = (recordings or Path()) / cli.name / session.agent
            record(planned, home, version(cli), request, folder)

        try:
            if cli.makes_home:
                start("http://127.0.0.1:1", cli.makes_home)
            return hand_over(cli, own, session.id, home, start, keep if recordings else None)
        except (TurnlogError, Trouble) as error:
            return Verdict(findings=[str(error)])


def print_pairs(table: dict[str, dict[str, list[Verdict]]], targets: Sequence[Cli]) -> None:
    """The pairs: items carried / reported as lost / sessions accepted of all."""
    names = [f"{cli.name} {version(cli)}" for cli in targets]
    print("| from | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for origin, row in sorted(table.items()):
        print(f"| {origin} | " + " | ".join(cell(row[cli.name]) for cli in targets) + " |")


def cell(verdicts: Sequence[Verdict]) -> str:
    carried, lost = sum(each.carried for each in verdicts), sum(each.lost for each in verdicts)
    accepted = sum(not each.findings for each in verdicts)
    return f"{carried} / {lost} / {accepted} of {len(verdicts)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
