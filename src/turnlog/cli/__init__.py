"""The `turnlog` command. Commands on the same subject share a module, which is imported when one is called.

Shared by commands: `options` (options, arguments and looking up a session), `terminal` (writing tables, JSON and
harmless text), `formatting` (numbers, money and times), `documents` (the types of `--json`). Manual:
docs/reference/cli.md.
"""
