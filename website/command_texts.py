"""The help of every command as data, for the pages and for the manual."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import NamedTuple

import click

from turnlog.cli.main import cli

WIDTH = 100
"""Columns of a usage line."""


class CommandText(NamedTuple):
    """What `--help` says of one command."""

    name: str
    """With `turnlog` and the groups above: `turnlog hub push`."""
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    """Each option as it is written, and what it does."""
    commands: tuple[tuple[str, str], ...]
    """Of a group: its commands, and what each does."""
    examples: tuple[str, ...]


def command_texts() -> Iterator[CommandText]:
    """Every command that help shows, in its order, groups before what is in them."""
    yield from _texts(cli, click.Context(cli, info_name="turnlog", terminal_width=WIDTH, **cli.context_settings))


def _texts(command: click.Command, context: click.Context) -> Iterator[CommandText]:
    below = list(_below(command, context))
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield CommandText(
        name=context.command_path,
        usage=usage,
        paragraphs=_paragraphs(command.help or ""),
        options=tuple(
            record for each in command.get_params(context) if (record := each.get_help_record(context)) is not None
        ),
        commands=tuple((name, each.get_short_help_str(WIDTH)) for name, each in below),
        examples=_examples(command.epilog or ""),
    )
    for name, each in below:
        yield from _texts(each, click.Context(each, info_name=name, parent=context))


def _below(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield name, found


def _paragraphs(text: str) -> tuple[str, ...]:
    found = (each.replace("\b", "").strip("\n") for each in inspect.cleandoc(text).split("\n\n"))
    return tuple(" ".join(each.split()) for each in found if each.strip())


def _examples(epilog: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in epilog.partition("Examples:")[2].splitlines() if line.strip())
