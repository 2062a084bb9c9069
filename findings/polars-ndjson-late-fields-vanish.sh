#!/bin/bash
# A good guess says: a field that only later lines of a JSON lines file have is a column with nulls above, or an error.
# What happens: what the first 100 lines do not have is left out without a word, at the top and inside objects. A number
#   with a fraction after 100 whole ones is an error, but an object where texts were is silently turned into its JSON text.
# Version: PyPI polars 2.1.0 (read_ndjson and scan_ndjson with their defaults).
# Why it matters: the fields that matter in an agent's log are rare ones: errors, compactions, costs. infer_schema_length=None
#   reads all of them.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check polars==2.1.0
cat > check.py <<'EOF'
import json

import polars as pl


def write(name, last):
    with open(name, "w") as f:
        for _ in range(150):
            f.write(json.dumps({"n": 1, "text": "x", "o": {"a": 1}}) + "\n")
        f.write(json.dumps(last) + "\n")


write("a.jsonl", {"n": 1, "text": {"k": 1}, "o": {"a": 1, "late": 2}, "error": "disk full"})
for frame in (pl.read_ndjson("a.jsonl"), pl.scan_ndjson("a.jsonl").collect()):
    print(frame.columns, frame.tail(1).to_dicts())
    assert frame.columns == ["n", "text", "o"]
    assert frame.tail(1).to_dicts() == [{"n": 1, "text": '{"k": 1}', "o": {"a": 1}}]
whole = pl.read_ndjson("a.jsonl", infer_schema_length=None)
assert "error" in whole.columns
write("b.jsonl", {"n": 1.5})
try:
    pl.read_ndjson("b.jsonl")
except pl.exceptions.ComputeError as error:
    print("1.5 after whole numbers:", error)
else:
    raise AssertionError("1.5 was read")
EOF
HOME="$D" v/bin/python check.py
