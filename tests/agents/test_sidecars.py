"""Small files beside a log: whatever stands in them, reading goes on (R-S34)."""

from __future__ import annotations

import msgspec

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, SessionChange
from turnlog.agents.sidecars import SidecarFold


class _Facts(msgspec.Struct):
    title: str | None = None
    size: int | None = None


class _Fold(SidecarFold[_Facts]):
    kind = _Facts
    salvages = True

    def add_facts(self, facts: _Facts, size: int, changes: Changes) -> None:
        if facts.title is not None:
            changes.sessions["s"] = SessionChange(session_id="s", titles={"custom": facts.title})


def read(data: bytes) -> Changes:
    source = Source(agent="a", path="/h/facts.json", root="/h", kind=SourceKind.SIDECAR, appendable=False)
    return _Fold(source).feed(data, 0)


def test_a_field_of_another_shape_leaves_the_others() -> None:
    found = read(b'{"size":"large","title":"Notes"}')
    assert found.sessions["s"].titles == {"custom": "Notes"}


def test_a_file_that_was_cut_behind_a_field_of_another_shape_is_reported() -> None:
    found = read(b'{"size":"large","title":"No')
    assert (len(found.diagnostics), found.counts.unreadable) == (1, 1)


def test_what_is_nested_too_deep_is_reported() -> None:
    """Behind a field of another shape, which alone is left out."""
    found = read(b'{"size":"large","more":%s%s}' % (b"[" * 3000, b"]" * 3000))
    [diagnostic] = found.diagnostics
    assert (diagnostic.reason, found.counts.unreadable) == ("nested too deep", 1)
