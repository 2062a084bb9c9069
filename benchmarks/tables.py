"""A store as Parquet tables, beside `json.dumps` of the same rows, as whole processes in turn.

    python benchmarks/tables.py --store STORE [--rounds 3]

STORE may be the one that `search.py` makes. The second process reads the tables that the first has written; what it
takes to read them is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

from measure import alternate, bare_environment, run


def main() -> None:
    parser = argparse.ArgumentParser(description="Time tables beside JSON of the same rows.")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dump is not None:
        dump(options.dump)
        return
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "tables"
        environment = bare_environment(Path(folder))
        export = [sys.executable, "-m", "turnlog", "export", str(tables), "--as", "parquet", "--store"]
        ours = [*export, str(options.store.absolute())]
        print(run(ours, environment).output)
        peer = [sys.executable, __file__, "--dump", str(tables)]
        print(run(peer, environment).output)
        found = alternate(
            {"parquet": lambda: run(ours, environment), "json": lambda: run(peer, environment)}, options.rounds
        )
    for name, summary in found.items():
        print(f"{name}: {summary}")


def dump(tables: Path) -> None:
    """Write every row as a line of JSON."""
    parquet: Any = import_module("pyarrow.parquet")
    rows, reading = 0, 0.0
    began = process_time()
    with Path(tables.parent / "rows.jsonl").open("w") as file:
        for path in sorted(tables.glob("*.parquet")):
            for batch in parquet.ParquetFile(path).iter_batches(8_192):
                before = process_time()
                found = batch.to_pylist()
                reading += process_time() - before
                file.writelines(json.dumps(row, default=str) + "\n" for row in found)
                rows += len(found)
        size = file.tell()
    print(
        f"{rows} rows, {size >> 20} MB of JSON: {process_time() - began:.1f} s CPU, {reading:.1f} s of it to read them"
    )


if __name__ == "__main__":
    main()
