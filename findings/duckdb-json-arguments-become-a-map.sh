#!/bin/bash
# A good guess says: reading JSON lines gives an object column a STRUCT with its keys, whatever they are; texts stay texts.
# What happens: when an object has many different keys over the file (the arguments of tool calls, headers, environment),
#   the column becomes MAP(VARCHAR, BIGINT): all values get one type. Texts that look like a day, a time or a UUID become
#   DATE, TIMESTAMP and UUID, an integer of 2**64 becomes a DOUBLE. An object that has a key twice is an error for the file.
# Version: PyPI duckdb 2.0.1 (read_json with its defaults).
# Why it matters: a log that loads today has other types tomorrow; name the columns, or read each line as JSON.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check duckdb==2.0.1
cat > check.py <<'EOF'
import json

import duckdb

db = duckdb.connect()
with open("log.jsonl", "w") as f:
    for i in range(300):
        f.write(json.dumps({"arguments": {f"k{i}": i}, "day": "2026-11-01", "id": "6f1c0d1e-0000-4000-8000-000000000001", "n": 2**64 + i}) + "\n")
kinds = {row[0]: row[1] for row in db.execute("describe select * from 'log.jsonl'").fetchall()}
print(kinds)
assert kinds == {"arguments": "MAP(VARCHAR, BIGINT)", "day": "DATE", "id": "UUID", "n": "DOUBLE"}, kinds
with open("few.jsonl", "w") as f:
    for i in range(300):
        f.write(json.dumps({"arguments": {f"k{i % 3}": i}}) + "\n")
few = db.execute("describe select * from 'few.jsonl'").fetchall()[0][1]
print("three keys:", few)
assert few.startswith("STRUCT"), few
open("twice.jsonl", "w").write('{"a":1,"a":2}\n')
try:
    db.execute("select * from 'twice.jsonl'").fetchall()
except duckdb.InvalidInputException as error:
    print("key twice:", str(error).split("\n")[0][:100])
else:
    raise AssertionError("a key that is there twice was read")
EOF
HOME="$D" v/bin/python check.py
