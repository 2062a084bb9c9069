"""The documentation site: `python website/site_pages.py` builds it into `.build/website/site`.

The pages of `docs/` are copied as they are; links to other files of the project lead to copies of those pages, or are
texts where the site has no such page. The references of commands, of the HTTP API and of Python names are made from
the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from command_texts import CommandText, command_texts

ROOT: Final = Path(__file__).parent.parent
BUILD: Final = ROOT / ".build" / "website"

Navigation: TypeAlias = list[dict[str, Any]]
"""Titles, each with the place of a page or with more of them."""

OTHER_PAGES: Final = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Pages that are elsewhere than in `docs/`, and where the site has them."""

PYTHON_NAMES: Final = {
    "turnlog": "Read logs and ask the store.",
    "turnlog.model": "The values of a history.",
    "turnlog.errors": "The exceptions.",
    "turnlog.store.values": "What queries return.",
    "turnlog.chat": "A backend for chat pages.",
    "turnlog.providers": "Histories as requests, and responses as messages.",
    "turnlog.replay": "Playback of a session.",
    "turnlog.redact": "Removing secrets.",
}
"""Modules whose public names the reference lists."""

_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^()\s]+)\)")
_CODE: Final = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def write_sources(folder: Path) -> None:
    """Write everything that the site generator reads into an empty folder."""
    docs = folder / "docs"
    pages = {path: path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))}
    pages |= {ROOT / path: Path(place) for path, place in OTHER_PAGES.items()}
    for source, place in pages.items():
        _write(docs / place, with_links(source, place, pages))
    for picture in (ROOT / "docs" / "pictures").glob("*"):
        (docs / "pictures").mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, docs / "pictures")
    (docs / "stylesheets").mkdir()
    shutil.copy(ROOT / "website" / "turnlog.css", docs / "stylesheets")
    for place, text in made_pages().items():
        _write(docs / place, text)
    settings = (ROOT / "website" / "zensical.toml").read_text()
    _write(folder / "zensical.toml", settings.replace("[project]\n", f"[project]\nnav = {_toml(navigation())}\n", 1))


def made_pages() -> dict[str, str]:
    """The pages that are made from the code: place -> text."""
    return {
        "reference/commands.md": commands_page(command_texts()),
        "reference/http-operations.md": operations_page(_openapi()),
        **python_pages(),
    }


def with_links(source: Path, place: Path, pages: dict[Path, Path]) -> str:
    """A page whose links lead to where the site has their targets."""

    def lead(match: re.Match[str]) -> str:
        text, link = match.groups()
        path, hash_sign, anchor = link.partition("#")
        if "://" in link or not path:
            return match[0]
        target = (source.parent / path).resolve()
        found = pages.get(target)
        if found is None:
            return text if text.startswith("`") else f"{text} (`{target.relative_to(ROOT)}` in the source)"
        return f"[{text}]({os.path.relpath(found, place.parent)}{hash_sign}{anchor})"

    pieces = _CODE.split(source.read_text())
    # A link may have code as its text, so it is looked for in all that is no block of code.
    blocks = re.split(r"(```.*?```)", "".join(pieces), flags=re.DOTALL)
    return "".join(each if each.startswith("```") else _LINK.sub(lead, each) for each in blocks)


def navigation() -> Navigation:
    """The sections of the index, with the titles that it gives the pages."""
    found: Navigation = [{"Home": "index.md"}]
    section: Navigation = []
    for line in (ROOT / "docs" / "index.md").read_text().splitlines():
        if line.startswith("## "):
            section = []
            found.append({line[3:]: section})
        elif (link := re.match(r"- \[([^\]]+)\]\(([^()\s]+\.md)\)", line)) is not None:
            section.append({link[1]: OTHER_PAGES.get(link[2].removeprefix("../"), link[2])})
    by_name = {name: value for entry in found for name, value in entry.items()}
    reference: Navigation = by_name["Reference"]
    reference[1:1] = [{"Commands": "reference/commands.md"}]
    python: Navigation = [{module: f"reference/python/{module}.md"} for module in PYTHON_NAMES]
    reference += [{"HTTP operations": "reference/http-operations.md"}, {"Python names": python}]
    pages: Navigation = [{"All formats": "formats/index.md"}]
    formats = sorted((ROOT / "docs" / "formats").glob("*.md"))
    named = {*places_of(found), *places_of(pages)}
    pages += [{title_of(page): place} for page in formats if (place := f"formats/{page.name}") not in named]
    others: Navigation = [{title_of(ROOT / path): place} for path, place in OTHER_PAGES.items() if place not in named]
    found += [{"Log formats": pages}, {"Project": others}]
    return found


def places_of(entries: str | Navigation) -> Iterator[str]:
    """Every page that a part of the navigation leads to."""
    if isinstance(entries, str):
        yield entries
    else:
        for value in (value for entry in entries for value in entry.values()):
            yield from places_of(value)


def title_of(page: Path) -> str:
    """The first heading of a page."""
    return next(line[2:] for line in page.read_text().splitlines() if line.startswith("# "))


def commands_page(texts: Iterable[CommandText]) -> str:
    """Every command with its options and examples."""
    lines = [
        "# Commands",
        "",
        "Every command, as its `--help` shows it. [Command line](cli.md) says what they do together.",
    ]
    for each in texts:
        lines += [
            "",
            f"## {each.name}" if each.name.count(" ") < 2 else f"### {each.name}",
            "",
            "```",
            each.usage,
            "```",
        ]
        for paragraph in each.paragraphs:
            lines += ["", _escape(paragraph)]
        lines += _table("command", each.commands) + _table("option", each.options)
        if each.examples:
            lines += ["", "```sh", *each.examples, "```"]
    return "\n".join(lines) + "\n"


def operations_page(described: dict[str, Any]) -> str:
    """Every operation of the HTTP API, by path."""
    lines = [
        "# HTTP operations",
        "",
        "Every operation that the server describes in `/api/openapi.json`. [HTTP API](http-api.md) explains access,",
        "responses and speed.",
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            # Its summary is the name of a function.
            lines += ["", f"## {method.upper()} {path}", "", _escape(operation.get("description", ""))]
            rows = [(f"{each['name']} ({each['in']})", _parameter(each)) for each in operation.get("parameters", ())]
            lines += _table("parameter", rows)
            lines += _table("status", [(status, _answer(each)) for status, each in operation["responses"].items()])
    return "\n".join(lines) + "\n"


def _parameter(parameter: dict[str, Any]) -> str:
    words = [_type(parameter.get("schema", {})), "required" if parameter.get("required") else ""]
    return ", ".join(word for word in words if word) + (f". {text}" if (text := parameter.get("description")) else "")


def _answer(response: dict[str, Any]) -> str:
    kinds = [f"{kind}: {_type(each.get('schema', {}))}" for kind, each in response.get("content", {}).items()]
    return "; ".join([response.get("description", ""), *kinds])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(str(each) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def python_pages() -> dict[str, str]:
    """A page a module with directives for its public names, each where it is first: place -> text."""
    seen: set[str] = set()
    pages: dict[str, str] = {}
    for module, purpose in PYTHON_NAMES.items():
        names = [name for name in dict.fromkeys(_public(module)) if name not in seen]
        seen.update(names)
        lines = [f"# {module}", "", f"{purpose} [Python API](../python-api.md) shows how to use the names.", ""]
        pages[f"reference/python/{module}.md"] = "\n".join([*lines, *(f"::: {name}\n" for name in names)])
    return pages


def _public(module: str) -> Iterator[str]:
    """Where the public names of a module are defined, since it only passes some of them on."""
    from importlib import import_module

    found = import_module(module)
    names = getattr(found, "__all__", None) or [
        name for name, value in vars(found).items() if getattr(value, "__module__", None) == module and name[0] != "_"
    ]
    for name in names:
        value = getattr(found, name)
        home = getattr(value, "__module__", None)
        is_own = str(home).startswith("turnlog") and hasattr(value, "__qualname__")
        yield f"{home}.{value.__qualname__}" if is_own else f"{module}.{name}"


def _openapi() -> dict[str, Any]:
    from turnlog.server.app import create_app

    with tempfile.TemporaryDirectory() as folder:
        return create_app(Path(folder) / "turnlog.db").openapi()


def _table(head: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = [f"| `{_cell(name)}` | {_escape(_cell(text))} |" for name, text in rows]
    return ["", f"| {head} | |", "|---|---|", *lines] if lines else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escape(text: str) -> str:
    """A text of help or of the API in Markdown: only its code is marked."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(each if each.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", each) for each in pieces)


def _toml(value: str | Navigation) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    entries = (f"{{ {_toml(name)} = {_toml(each)} }}" for entry in value for name, each in entry.items())
    return f"[{', '.join(entries)}]"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(with_bars(text))


def with_bars(text: str) -> str:
    """The page with plain bars in the code of its tables: GitHub wants them escaped, the generator shows that."""
    return "\n".join(
        _CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in text.split("\n")
    )


def keep_to_itself(site: Path) -> None:
    """Take from this machine what the generator would load from another site, and refuse whatever else it would."""
    # It names all that it loads from the root of a host, so it is without style in a folder, and in a folder of a host.
    (site / "404.html").unlink()
    shim = ROOT / "web" / "node_modules" / "iframe-worker" / "shim" / "index.js"
    scripts = site / "assets" / "javascripts"
    shutil.copy(shim, scripts / "iframe-worker.js")
    for page in site.rglob("*.html"):
        own = os.path.relpath(scripts / "iframe-worker.js", page.parent)
        text = page.read_text().replace("https://unpkg.com/iframe-worker/shim", own)
        page.write_text(text)
        if found := _LOADED.search(text):
            raise click.ClickException(f"{page.relative_to(site)} would load from another site: {found[0]}")


_LOADED: Final = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")


def main() -> None:
    """Build the site."""
    shutil.rmtree(BUILD, ignore_errors=True)
    write_sources(BUILD)
    program = Path(sys.executable).parent / "zensical"
    done = subprocess.run([program, "build", "--clean", "--strict"], cwd=BUILD, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    keep_to_itself(BUILD / "site")
    click.echo(f"The site is in {(BUILD / 'site').relative_to(ROOT)}: open index.html.")


if __name__ == "__main__":
    main()
