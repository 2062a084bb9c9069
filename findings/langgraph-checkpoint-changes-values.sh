#!/bin/bash
# A good guess says: what a node returns is what the next turn of the thread reads from the checkpoint, or saving fails.
# What happens: it depends on the value. A tuple comes back as a list and a bytearray as bytes; an exception comes back as
#   the text of its repr; half of a surrogate pair becomes "?". An integer beyond 64 bits, a Path and a complex number end
#   the run with TypeError after the node has done its work. Sets, Decimal, dates with a zone and UUID come back as they were.
# Version: PyPI langgraph 1.2.24, langgraph-checkpoint-sqlite 3.1.2.
# Why it matters: arguments and results of tools are such values; a history that is read from checkpoints is not always what
#   the model saw.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check langgraph==1.2.24 langgraph-checkpoint-sqlite==3.1.2
cat > check.py <<'EOF'
import datetime
import decimal
import pathlib
import uuid
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    value: Any


def kept(value):
    """The value after a turn, or the exception."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        graph = StateGraph(State)
        graph.add_node("tool", lambda _: {"value": value})
        graph.add_edge(START, "tool")
        graph.add_edge("tool", END)
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}}
        try:
            app.invoke({"value": None}, config)
        except TypeError as error:
            return error
        return app.get_state(config).values["value"]


for value, expected in (((1, 2), [1, 2]), (bytearray(b"y"), b"y"), (ValueError("no"), "ValueError('no')"), ("a\ud800b", "a?b")):
    seen = kept(value)
    print(repr(value), "->", repr(seen))
    assert type(seen) is type(expected) and seen == expected
for value in (2**64, pathlib.PurePosixPath("/a"), 1j):
    seen = kept(value)
    print(repr(value), "->", repr(seen))
    assert isinstance(seen, TypeError)
for value in ({1, 2}, decimal.Decimal("1.10"), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), uuid.UUID(int=1), 2**63):
    seen = kept(value)
    assert type(seen) is type(value) and seen == value, seen
EOF
HOME="$D" v/bin/python check.py
