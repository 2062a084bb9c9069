"""The `turnlog` command: one module a group of commands, each imported when it is called.

What commands share: `options` (what is asked), `lookup` (which store, which session), `terminal` and `figures` (what
is shown), `shapes` (what `--json` writes). Docs: docs/reference/cli.md.
"""
