"""One kind of secret: what it looks like, and the ways in which the tables of rules write that down."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from turnlog.redact.placeholders import is_given


class Shape:
    """A pattern that is compiled when a text is first tried with it: most texts need few of the rules."""

    def __init__(self, source: str, flags: int = 0) -> None:
        """Keep the pattern's source."""
        self._source = source
        self._flags = flags

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self._source, self._flags)


class Rule(NamedTuple):
    """A kind of secret. Its group `secret`, else the whole match, is what is masked."""

    name: str
    literals: tuple[str, ...]
    """Every match contains one of them; lower case where case does not matter."""
    shape: Shape
    check: Callable[[str], bool] | None = None
    """What else must hold of the secret, besides being no placeholder."""
    any_case: bool = False
    """The shape is for text in lower case."""
    begins: bool = False
    """A match begins with one of the literals, at the beginning of a word."""
    near: Shape | None = None
    """What must be before the match, on the same line."""
    near_word: str = ""
    """What every match of `near` contains: most texts lack it, and need no look at an option as short as `-a`."""


WORD = r"""(?:\\{0,3}["'])?(?P<secret>[^\s"'`\\\x1b]{4,256})"""
"""A value in a shell."""

_BEFORE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;0-9]m)|(?<=\[K))"
    # A secret also begins after an escaped line end, a percent code or a control sequence.
)


def token(name: str, literals: str, shape: str, check: Callable[[str], bool] | None = None) -> Rule:
    """A secret that is recognised by its beginning and is not part of a longer word."""
    return Rule(name, tuple(literals.split()), _whole(shape), check, begins=True)


def inside(name: str, literals: str, shape: str) -> Rule:
    """A secret that is recognised by a literal inside it."""
    return Rule(name, tuple(literals.split()), _whole(shape))


def _whole(shape: str) -> Shape:
    return Shape(rf"{_BEFORE}(?:{shape})(?![A-Za-z0-9])")


def after(
    name: str, literals: str, shape: str, check: Callable[[str], bool] | None = None, near: str | None = None
) -> Rule:
    """A secret that is recognised by the text before it, in any case."""
    command = None if near is None else _command(near)
    return Rule(name, tuple(literals.split("|")), Shape(shape), check, any_case=True, near=command)


def option(name: str, option: str, commands: str, shape: str, word: str = "") -> Rule:
    """A secret in an option of some commands; all of them contain the word."""
    return Rule(
        name,
        (option,),
        Shape(rf"""{option}(?<=[\s"'`]{option}){shape}"""),
        is_given,
        near=_command(commands),
        near_word=word,
    )


def _command(names: str) -> Shape:
    # A removed line of a diff begins with a dash.
    return Shape(rf"(?:(?<![\w.-])|(?<=^-))(?:{names})(?![\w-])", re.MULTILINE)
