#!/bin/bash
# A good guess says: list(prefix) works as it does at S3: any prefix of a key, also "2026-1" for October to December.
# What happens: a prefix counts in whole path segments. "2026-1" lists nothing beside 2026-11/a and 2026-12/b, and the exact
#   key "2026-11/a" as a prefix lists nothing, not even itself. A slash at the start or the end of a key is dropped on put, so
#   "logs/" and "logs" are one object.
# Version: PyPI obstore 0.12.1 (memory and local stores; the rule is the client's, whatever the store).
# Why it matters: months, hashes and machine names as key prefixes need a slash behind them.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check obstore==0.12.1
cat > check.py <<'EOF'
import tempfile

import obstore
from obstore.store import LocalStore, MemoryStore

for store in (MemoryStore(), LocalStore(tempfile.mkdtemp())):
    for key in ("2026-11/a", "2026-12/b", "2026-1x"):
        obstore.put(store, key, b"1")

    def keys(prefix=None):
        return sorted(meta["path"] for batch in obstore.list(store, prefix=prefix) for meta in batch)

    seen = {prefix: keys(prefix) for prefix in ("2026-1", "2026-11", "2026-11/", "2026-11/a")}
    print(type(store).__name__, seen)
    assert seen == {"2026-1": [], "2026-11": ["2026-11/a"], "2026-11/": ["2026-11/a"], "2026-11/a": []}
    obstore.put(store, "logs/", b"first")
    obstore.put(store, "/logs", b"second")
    assert [k for k in keys() if "logs" in k] == ["logs"]
    assert bytes(obstore.get(store, "logs").bytes()) == b"second"
EOF
HOME="$D" v/bin/python check.py
