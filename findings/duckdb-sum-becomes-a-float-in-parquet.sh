#!/bin/bash
# A good guess says: the sum of a BIGINT column, written to Parquet, is read back as the same integer.
# What happens: sum(BIGINT) is a HUGEINT, Parquet has no such type, and COPY writes a DOUBLE without a word: a sum of
#   9,007,199,254,740,993 comes back as …992.0. The same COPY to JSON and CSV keeps every digit. A cast to BIGINT or
#   DECIMAL before COPY keeps it in Parquet, too.
# Version: PyPI duckdb 2.0.1, read with duckdb and pyarrow 26.0.1.
# Why it matters: token and cost totals that are exported from a table of usage change their type and lose their last digits.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1
cat > check.py <<'EOF'
import duckdb
import pyarrow.parquet as pq

db = duckdb.connect()
db.execute("create table usage as select * from (values (9007199254740992::bigint), (1::bigint)) t(tokens)")
exact, kind = db.execute("select sum(tokens), typeof(sum(tokens)) from usage").fetchone()
db.execute("copy (select sum(tokens) s from usage) to 's.parquet'")
db.execute("copy (select sum(tokens) s from usage) to 's.json'")
db.execute("copy (select sum(tokens)::bigint s from usage) to 'c.parquet'")
back, back_kind = db.execute("select s, typeof(s) from 's.parquet'").fetchone()
print(exact, kind, "->", repr(back), back_kind, "|", pq.read_schema("s.parquet").field("s").type, "|", open("s.json").read().strip())
assert (exact, kind) == (9007199254740993, "HUGEINT")
assert back_kind == "DOUBLE" and back == 9007199254740992.0
assert str(exact) in open("s.json").read()
assert db.execute("select s from 'c.parquet'").fetchone() == (exact,)
EOF
HOME="$D" v/bin/python check.py
