#!/bin/bash
# A good guess says: with FTS5's porter tokenizer, the prefix of a word finds the word, whatever its length.
# What happens: the prefix is stemmed by the same rules as a whole word. "relat*" finds "relational", "relati*" and
#   "relatio*" do not, "relation*" does, "relationa*" does not, "relational*" does. A search that runs at each key press
#   loses a hit and finds it again two keys later.
# Version: SQLite 3.54.1 (PyPI apsw 3.54.1.0).
# Why it matters: search while typing over a stemmed index needs a second, unstemmed index for the last word.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check apsw==3.54.1.0
cat > check.py <<'EOF'
import apsw

words = {"relational": "relati relatio relationa", "payments": "pay", "caching": "cachi cachin", "happiness": "happin happine happines"}
db = apsw.Connection(":memory:")
db.execute("create virtual table t using fts5(x, tokenize='porter unicode61')")
for word in words:
    db.execute("insert into t values(?)", (word,))
for word, expected in words.items():
    found = {n: db.execute("select count(*) from t where t match ?", (f'"{word[:n]}"*',)).get for n in range(3, len(word) + 1)}
    holes = [word[:n] for n in found if not found[n]]
    print(word, "is not found by:", *(h + "*" for h in holes))
    assert holes == expected.split(), holes
    assert found[len(word)] == 1
EOF
HOME="$D" v/bin/python check.py
