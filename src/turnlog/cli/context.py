"""`turnlog context`: what a new session should know of earlier ones."""

from __future__ import annotations

from pathlib import Path

import click

from turnlog.cli.filters import project_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import WholeNumber, examples, json_option
from turnlog.cli.terminal import write_json
from turnlog.plain_text import one_line
from turnlog.store.names import find_project


@click.command(
    epilog=examples(
        "turnlog context                           # the project of the current folder",
        "turnlog context src/app.py --max-tokens 1000",
        "turnlog context --project shop > notes.md",
    )
)
@click.argument("files", metavar="[FILE...]", nargs=-1)
@project_option
@click.option(
    "--max-tokens",
    type=WholeNumber(200, 50_000),
    default=2_000,
    show_default=True,
    help="Write at most so many tokens. A token is counted as four bytes.",
)
@click.option("--no-redact", is_flag=True, help="Keep secrets in what is written.")
@json_option
@fresh_store_option
def context(
    files: tuple[str, ...], project: str | None, max_tokens: int, no_redact: bool, as_json: bool, store_path: Path
) -> None:
    """Write what earlier sessions did in a project, as Markdown for a new session.

    The page has the newest sessions with their last prompt, last answer and edited files, and the files that were
    edited most. With FILE, it first says who touched that file, and why. No model is called: the same store gives the
    same page.
    """
    from turnlog.mcp.context import Subject, project_context
    from turnlog.mcp.history import project_of

    with open_fresh(store_path) as store:
        projects = store.projects()
        if project:
            named = find_project(store, project)
            path = next(each.path for each in projects if named in (each.path, each.name))
        else:
            path = project_of(projects, Path.cwd())
        subject = Subject(path, tuple(str(Path(file).absolute()) if Path(file).exists() else file for file in files))
        page = project_context(store, subject, max_tokens=max_tokens, is_redacted=not no_redact)
        untouched = [file for file, name in zip(files, subject.files, strict=True) if not store.file_history(name).uses]
    for file in untouched:
        click.echo(f"turnlog: no session that was read touched {one_line(file)}", err=True)
    if as_json:
        write_json({"project": path, "page": page})
    else:
        click.echo(page)
