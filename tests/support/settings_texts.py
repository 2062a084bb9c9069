"""Settings as people and programs write them: any JSON value, in any style that an agent still reads."""

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import strategies as st

BLANKS = ["", " ", "  ", "\t"]
COMMENTS = ["// mine", "/* kept */", '// "hooks": {', "/* a, b } ] */", "// é 你好"]

names = st.sampled_from(["model", "theme", "tools", "env", "a b", "é", 'x"y', "permissions"])
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
handlers = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["say done", "./check.sh 'x'"])}
)
groups = st.fixed_dictionaries({"hooks": st.lists(handlers, max_size=2)}, optional={"matcher": st.just("Bash")})
other_hooks = st.dictionaries(
    st.sampled_from(["Stop", "PreToolUse", "SessionStart", "BeforeTool", "TomorrowsEvent"]),
    st.lists(groups, max_size=2),
)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """The settings of somebody, who may have hooks."""
    found = draw(st.dictionaries(names, values, max_size=4))
    if draw(st.booleans()):
        found["hooks"] = draw(other_hooks)
    order = draw(st.permutations(list(found)))
    return {name: found[name] for name in order}


@st.composite
def texts(draw: st.DrawFn, *, strict: bool) -> str:
    """Settings as text; strict: as a JSON parser takes it."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    indent = draw(st.sampled_from(["", " ", "  ", "    ", "\t", None]))
    value = draw(settings())
    text = _write(draw, value, newline, indent, "", strict=strict)
    before = "" if strict else draw(st.sampled_from(["", "\ufeff", f"// settings{newline}"]))
    return before + text + draw(st.sampled_from(["", newline, newline * 2, " "]))


def _write(draw: st.DrawFn, value: Any, newline: str, indent: str | None, before: str, *, strict: bool) -> str:
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    is_flat = indent is None or draw(st.integers(0, 4)) == 0
    inside = before if is_flat else before + (indent or "")
    gap = draw(st.sampled_from(BLANKS)) if is_flat else newline + inside
    items: list[str] = []
    for key, inner in _items(value):
        colon = f"{draw(st.sampled_from(BLANKS))}:{draw(st.sampled_from(BLANKS))}"
        name = "" if key is None else json.dumps(key) + colon
        items.append(name + _write(draw, inner, newline, indent, inside, strict=strict))
    if not items:
        return opening + draw(st.sampled_from(["", " ", newline, newline + before])) + closing
    pieces = [opening]
    for number, item in enumerate(items):
        is_last = number == len(items) - 1
        comma = "," if not is_last or (not strict and draw(st.integers(0, 3)) == 0) else ""
        pieces += [gap, _remark(draw, newline, inside, strict=strict), item, _behind(draw, newline, strict=strict)]
        pieces += [comma, _behind(draw, newline if is_flat else "", strict=strict)]
    pieces.append(gap if is_flat else newline + before)
    return "".join([*pieces, closing])


def _behind(draw: st.DrawFn, newline: str, *, strict: bool) -> str:
    """A comment behind something; one that goes to the end of its line ends with `newline`, a line break or nothing."""
    if strict or draw(st.integers(0, 5)):
        return ""
    comment = draw(st.sampled_from(COMMENTS))
    return f" {comment}{newline if comment.startswith('//') else ''}"


def _remark(draw: st.DrawFn, newline: str, before: str, *, strict: bool) -> str:
    if strict or draw(st.integers(0, 4)):
        return ""
    return draw(st.sampled_from(COMMENTS)) + newline + before


def _items(value: Any) -> list[tuple[str | None, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[str | None, Any]", value).items())
    return [(None, item) for item in value]
