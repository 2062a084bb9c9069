"""How many secrets redaction finds, and how much else it takes out, beside scanners for secrets on the same files.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install detect-secrets==1.5.0 credsweeper==1.19.5
    python benchmarks/redaction.py --peers /tmp/peers/bin/python
    python benchmarks/redaction.py --log session.jsonl --beside /tmp/older/bin/python    # speed

A secret of each kind of `tests/support/secret_kinds.py` and each text of `innocent_texts.py` is written into a file for
each place of `log_places.py`. A scanner finds a secret if it reports anything at all in the file; redaction does if no
ten characters of the secret in a row are left. Whatever is reported in, or taken out of, a file without a secret is a
false alarm. `--seed` makes other secrets of the same kinds. `--table held-out` takes the second table
(`held_out_secrets.py`), whose author had not read the rules but their documentation and part of the first table; the
rules were mended with it in sight afterwards. The peers'
rules were written without either: figures of ours are an upper bound.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.held_out_innocents import held_out_innocents
from support.held_out_secrets import HELD_OUT_PLACES, held_out_secrets
from support.innocent_texts import innocents
from support.log_places import PLACES, is_left
from support.secret_kinds import SEED, Secret, secrets

PICTURE = "text in a picture"

_DETECT_SECRETS = """
import json, sys, time
from pathlib import Path
from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings
began = time.process_time()
found = {}
with default_settings():
    for path in sorted(Path(sys.argv[1]).iterdir()):
        collection = SecretsCollection()
        collection.scan_file(str(path))
        if collection.data:
            found[path.name] = sorted({secret.type for _, secret in collection})
print(json.dumps({"found": found, "seconds": time.process_time() - began}))
"""

_CREDSWEEPER = """
import json, sys, time
from pathlib import Path
from credsweeper import CredSweeper
from credsweeper.file_handler.files_provider import FilesProvider
began = time.process_time()
paths = sorted(Path(sys.argv[1]).iterdir())
sweeper = CredSweeper()
sweeper.run(content_provider=FilesProvider([str(path) for path in paths]))
found = {}
for candidate in sweeper.credential_manager.get_credentials():
    for line in candidate.line_data_list:
        found.setdefault(Path(line.path).name, set()).add(candidate.rule_name)
found = {name: sorted(rules) for name, rules in found.items()}
print(json.dumps({"found": found, "seconds": time.process_time() - began}))
"""

_OURS = """
import json, sys, time
from pathlib import Path
from turnlog.model import FilePart
from turnlog.redact import Redactor
began = time.process_time()
found, out = {}, Path(sys.argv[2])
for path in sorted(Path(sys.argv[1]).iterdir()):
    data, redactor = path.read_bytes(), Redactor()
    if path.suffix == ".png":
        left = redactor.redact(FilePart(media_type="image/png", data=data)).data
    elif path.suffix == ".json":
        left = redactor.redact_json(data)
    else:
        left = redactor.redact(data.decode()).encode()
    (out / path.name).write_bytes(left)
    if left != data:
        found[path.name] = sorted({masked.rule for masked in redactor.report})
print(json.dumps({"found": found, "seconds": time.process_time() - began}))
"""

_SPEED = """
import json, sys, time
from pathlib import Path
from turnlog.redact import Redactor
data = Path(sys.argv[1]).read_bytes()
lines = data.splitlines(keepends=True) * max(1, int(sys.argv[2]) * 1_000_000 // len(data))
began = time.process_time()
redactor = Redactor()
for line in lines:
    redactor.redact_json(line)
print(json.dumps({"bytes": sum(map(len, lines)), "seconds": time.process_time() - began}))
"""

PEERS = {"detect-secrets": _DETECT_SECRETS, "credsweeper": _CREDSWEEPER}


class Case(NamedTuple):
    """A file, and the secret in it."""

    file: str
    place: str
    kind: str
    secret: Secret | None


class Result(NamedTuple):
    """What one tool makes of all files."""

    found: Mapping[str, Sequence[str]]
    """File -> the rules that it reports there."""
    seconds: float
    leaks: frozenset[str] = frozenset()
    """Files in which a secret is left."""


class Table(NamedTuple):
    """Secrets, other texts, and the places in which both are written: ending of a file, and the text in it."""

    secrets: Callable[[int], Iterable[Secret]]
    innocents: Callable[[int], Iterable[tuple[str, str]]]
    places: Mapping[str, tuple[str, Callable[[Secret], str | bytes | None]]]


def _of_text(make: Callable[[str], str]) -> Callable[[Secret], str]:
    return lambda secret: make(secret.text)


TABLES = {
    "first": Table(secrets, innocents, PLACES),
    "held-out": Table(
        held_out_secrets,
        held_out_innocents,
        {place: (ending, _of_text(make)) for place, (ending, make) in HELD_OUT_PLACES.items()},
    ),
}


def write_cases(folder: Path, table: Table, seed: int) -> list[Case]:
    """Every secret and every innocent text in every place."""
    cases: list[Case] = []
    wanted: list[tuple[str, Secret | None, Secret]] = [(each.kind, each, each) for each in table.secrets(seed)]
    wanted += [
        (f"{name}: {text[:60]}", None, Secret(name, "snippet", text, "")) for name, text in table.innocents(seed)
    ]
    for number, (kind, secret, shown) in enumerate(wanted):
        for index, (place, (ending, make)) in enumerate(table.places.items()):
            content = make(shown)
            if content is not None:
                file = f"{number:04}-{index:02}.{ending}"
                (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
                cases.append(Case(file, place, kind, secret))
    return cases


def run_ours(python: str, folder: Path, cases: Sequence[Case]) -> Result:
    with tempfile.TemporaryDirectory() as made:
        answer = _run(python, _OURS, str(folder), made)
        texts = {case.file: (Path(made) / case.file).read_text("utf-8", "replace") for case in cases if case.secret}
    leaks = [case.file for case in cases if case.secret and is_left(case.secret.secret, texts[case.file])]
    return Result(answer["found"], answer["seconds"], frozenset(leaks))


def _run(python: str, program: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([python, "-c", program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def report(name: str, cases: Sequence[Case], result: Result, show: bool) -> None:
    """Print recall by place, recall and precision in all."""
    counted = defaultdict[str, Counter[str]](Counter)
    for case in cases:
        counted[case.place][_outcome(case, result)] += 1
    print(f"\n{name}: {result.seconds:.1f} s of CPU time")
    for place, count in counted.items():
        _write_row(place, count)
    _write_row("all but pictures", _sum(counted, lambda place: place != PICTURE))
    _write_row("all", _sum(counted, lambda place: True))
    if show:
        _write_kinds("missed", cases, result, "missed")
        _write_kinds("false alarms", cases, result, "false")


def _outcome(case: Case, result: Result) -> str:
    reported = case.file in result.found
    if case.secret is None:
        return "false" if reported else "right"
    return "found" if reported and case.file not in result.leaks else "missed"


def _sum(counted: Mapping[str, Counter[str]], chosen: Callable[[str], bool]) -> Counter[str]:
    return sum((count for place, count in counted.items() if chosen(place)), Counter[str]())


def _write_row(place: str, count: Counter[str]) -> None:
    secret, innocent, reported = (
        count["found"] + count["missed"],
        count["false"] + count["right"],
        count["found"] + count["false"],
    )
    recall, precision = (100 * count["found"] / total if total else 0.0 for total in (secret, reported))
    print(
        f"  {place:22} recall {recall:5.1f} % of {secret:5}  precision {precision:5.1f} %"
        f"  false alarms {count['false']:4} of {innocent}"
    )


def _write_kinds(title: str, cases: Sequence[Case], result: Result, outcome: str) -> None:
    print(f"  {title}:")
    places = defaultdict[str, list[str]](list)
    for case in cases:
        if _outcome(case, result) == outcome:
            rules = ", ".join(result.found.get(case.file, ()))
            places[case.kind].append(f"{case.place} ({rules})" if rules else case.place)
    for kind, where in places.items():
        print(f"    {kind}: {'; '.join(where)}")


def compare_speed(log: Path, megabytes: int, pythons: Sequence[str], rounds: int) -> None:
    """Redact the lines of a log as exact JSON, in turn with each Python; the fastest of some rounds counts."""
    answers = [[_run(python, _SPEED, str(log), str(megabytes)) for python in pythons] for _ in range(rounds)]
    for number, python in enumerate(pythons):
        best = min((answer[number] for answer in answers), key=lambda answer: answer["seconds"])
        speed = best["bytes"] / best["seconds"] / 1e6
        print(f"{python}: {best['seconds']:.2f} s of CPU time for {best['bytes'] / 1e6:.0f} MB, {speed:.1f} MB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python in which turnlog is installed")
    parser.add_argument("--peers", help="a Python in which the peers are installed")
    parser.add_argument("--table", choices=TABLES, default="first")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", action="store_true", help="list what was missed and what was a false alarm")
    parser.add_argument("--log", type=Path, help="measure the speed on the lines of this log instead")
    parser.add_argument("--megabytes", type=int, default=20, help="repeat the log up to about this size")
    parser.add_argument("--beside", help="a Python with another turnlog, for the speed")
    options = parser.parse_args()
    if options.log is not None:
        compare_speed(options.log, options.megabytes, [each for each in (options.python, options.beside) if each], 3)
        return
    with tempfile.TemporaryDirectory() as folder:
        cases = write_cases(Path(folder), TABLES[options.table], options.seed)
        kinds = len({case.kind for case in cases if case.secret})
        texts = len({case.kind for case in cases if not case.secret})
        print(f"{kinds} kinds of secrets, {texts} other texts, {len(cases)} files, seed {options.seed}")
        report("turnlog", cases, run_ours(options.python, Path(folder), cases), options.show)
        for name, program in PEERS.items() if options.peers else ():
            answer = _run(options.peers, program, folder)
            report(name, cases, Result(answer["found"], answer["seconds"]), options.show)


if __name__ == "__main__":
    main()
