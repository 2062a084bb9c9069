"""Finds out whether the tests still find faults that were mended once, and which of them the quick run finds.

`mended_faults.txt` lists commits that mended one. On a copy of the working tree, the change of each to `src/` is taken
back, and the test files that came with it are run:

    .venv/bin/python benchmarks/mended_faults.py            # those without a result yet
    .venv/bin/python benchmarks/mended_faults.py 125b120bee # these alone, again
    .venv/bin/python benchmarks/mended_faults.py --whole    # for those that nothing has found: all tests of their rooms

Results are kept in `.build/mended_faults.json`, so it may be stopped at any time. A fault counts as found by
`make test-all` if a test fails, and by `make test` if one fails that `tests/thorough.txt` does not list. Commits whose
change cannot be taken back any more are named: replace them by newer ones.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import thorough  # noqa: E402  # from the folder that was just named

TABLE = Path(__file__).with_suffix(".txt")
RESULTS = ROOT / ".build" / "mended_faults.json"
LINKED = ("tests/conformance/node_modules", "src/turnlog/server/static")
"""What is installed and built, and which no fault of Python changes."""


def git(*arguments: str, cwd: Path = ROOT, given: str | None = None) -> str:
    """What git prints."""
    done = subprocess.run(["git", *arguments], cwd=cwd, input=given, capture_output=True, text=True, check=True)
    return done.stdout


@contextmanager
def copy_of_the_tree() -> Generator[Path]:
    """A worktree of the newest commit, with what is built."""
    parent = Path(tempfile.mkdtemp(prefix="faults-"))
    copy = parent / "tree"
    git("worktree", "add", "--quiet", "--detach", str(copy))
    try:
        for name in LINKED:
            (copy / name).symlink_to(ROOT / name)
        yield copy
    finally:
        git("worktree", "remove", "--force", str(copy))
        shutil.rmtree(parent, ignore_errors=True)


@contextmanager
def undone(commit: str, copy: Path) -> Generator[bool]:
    """The copy without what a commit changed in `src/`; False if later commits have changed the same lines."""
    change = git("show", "--format=", "--no-color", commit, "--", "src/turnlog")
    try:
        git("apply", "--reverse", cwd=copy, given=change)
    except subprocess.CalledProcessError:
        yield False
        return
    try:
        yield True
    finally:
        git("checkout", "--quiet", "--", "src", cwd=copy)
        git("clean", "--quiet", "--force", "-d", "src", cwd=copy)


def tests_of(commit: str) -> list[str]:
    """The test files that a commit changed, and which are still there."""
    names = git("show", "--format=", "--name-only", commit, "--", "tests").split()
    return [name for name in names if Path(name).name.startswith("test_") and (ROOT / name).is_file()]


def failed_tests(copy: Path, files: Iterable[str]) -> list[str]:
    """Run tests in a copy; the ids of those that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-m", "not browser and not wheel", "--timeout=120", *files]
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    marks = ("FAILED ", "ERROR ")
    found = [line.split(" ", 1)[1].split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(marks)]
    # What cannot even be imported is found by every run.
    return found or (["the tests could not run"] if done.returncode not in (0, 1, 5) else [])


def is_quick(test: str) -> bool:
    """Whether a test is one of the quick run."""
    file, _, case = test.removeprefix("tests/").partition("::")
    listed = thorough.listed().get(file, set())
    return not {case, case.partition("[")[0]} & listed


def room_of(commit: str) -> str:
    """The package that a commit changed."""
    first = git("show", "--format=", "--name-only", commit, "--", "src/turnlog").split()[0]
    return first.split("/")[2].removesuffix(".py")


def measure(commits: Sequence[str], results: dict[str, Any], *, whole: bool) -> None:
    """Take back each of the commits, run its tests, and keep what failed."""
    with copy_of_the_tree() as copy:
        for commit in commits:
            with undone(commit, copy) as applies:
                files = [f"tests/{room_of(commit)}"] if whole else tests_of(commit)
                failed = failed_tests(copy, files) if applies else None
            results[commit] = {"room": room_of(commit), "failed": failed}
            RESULTS.write_text(json.dumps(results, indent=1))
            print(row(commit, results[commit]), flush=True)


def row(commit: str, result: dict[str, Any]) -> str:
    """A line of the table."""
    subject = git("show", "--no-patch", "--format=%s", commit).strip()
    failed: list[str] | None = result["failed"]
    if failed is None:
        return f"{commit} {result['room']:<10} cannot be taken back         {subject}"
    quick = sum(map(is_quick, failed))
    return f"{commit} {result['room']:<10} quick {quick:>4}  all {len(failed):>4}   {subject}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*")
    parser.add_argument("--whole", action="store_true", help="all tests of a fault's room, where nothing has found it")
    parser.add_argument("--table", action="store_true", help="print what is known, and run nothing")
    arguments = parser.parse_args()
    listed = [line.split()[0] for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.table:
        wanted: list[str] = []
    elif arguments.whole:
        wanted = [commit for commit in listed if results.get(commit, {}).get("failed") == []]
    else:
        wanted = arguments.commits or [commit for commit in listed if commit not in results]
    if wanted:
        measure(wanted, results, whole=arguments.whole)
    known = {commit: results[commit]["failed"] for commit in listed if commit in results}
    if arguments.table:
        print("\n".join(row(commit, results[commit]) for commit in known))
    by_all = sum(bool(failed) for failed in known.values())
    by_quick = sum(any(map(is_quick, failed or ())) for failed in known.values())
    print(f"{len(listed)} faults, {len(known)} tried: make test-all finds {by_all}, make test {by_quick}")


if __name__ == "__main__":
    main()
