"""The manual page, from what the commands say of themselves: `python website/man_page.py > man/turnlog.1`."""

from __future__ import annotations

import sys

import turnlog
from command_texts import CommandText, command_texts


def man_page() -> str:
    """The page in the language of man(7)."""
    first, *others = command_texts()
    summary = str(turnlog.__doc__).partition(".")[0]
    lines = [
        f'.TH TURNLOG 1 "" "turnlog {turnlog.__version__}" "User Commands"',
        ".SH NAME",
        f"turnlog \\- {_text(summary[:1].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        ".B turnlog",
        _text(first.usage.removeprefix("turnlog ")),
        ".SH DESCRIPTION",
        *_paragraphs(first),
        ".SH OPTIONS",
        *_options(first),
        ".SH COMMANDS",
    ]
    for each in others:
        lines += [f".SS {_text(each.name)}", f".B {_text(each.usage)}", *_paragraphs(each), *_options(each)]
        if each.examples:
            lines += [".PP", "Examples:", ".PP", ".nf", ".RS", *map(_text, each.examples), ".RE", ".fi"]
    lines += [
        ".SH SEE ALSO",
        "The documentation of the same version, as pages: the folder docs of its source.",
    ]
    return "\n".join(lines) + "\n"


def _paragraphs(text: CommandText) -> list[str]:
    return [line for each in text.paragraphs for line in (".PP", _text(each))]


def _options(text: CommandText) -> list[str]:
    return [line for name, help in text.options for line in (".TP", f".B {_text(name)}", _text(help))]


def _text(text: str) -> str:
    """A text that shows as it is: no escapes, no hyphens for options, no request at the start of a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    sys.stdout.write(man_page())
