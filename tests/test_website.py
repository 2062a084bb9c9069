"""What the documentation site, the manual and the list of materials are made from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bill_of_materials import bill_of_materials
from command_texts import command_texts
from man_page import man_page
from site_pages import ROOT, navigation, places_of, with_bars, write_sources
from turnlog.cli.main import cli

LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the site generator reads."""
    folder = tmp_path_factory.mktemp("website")
    write_sources(folder)
    return folder / "docs"


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as the generator makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_link_of_the_site_leads_to_a_page_of_it(sources: Path) -> None:
    pages = sorted(sources.rglob("*.md"))
    assert len(pages) > 80
    for page in pages:
        for link in LINK.findall(CODE.sub("", page.read_text())):
            if "://" in link:
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), (page.name, link)
            assert target.is_relative_to(sources), (page.name, link)
            assert not anchor or target.suffix != ".md" or anchor in anchors(target), (page.name, link)


def test_the_navigation_leads_to_every_page_once(sources: Path) -> None:
    found = list(places_of(navigation()))
    assert len(set(found)) == len(found)
    assert set(found) == {page.relative_to(sources).as_posix() for page in sources.rglob("*.md")}


def test_the_page_of_commands_has_every_command_with_its_options(sources: Path) -> None:
    text = (sources / "reference" / "commands.md").read_text()
    for name in cli.commands:
        assert f"\n## turnlog {name}\n" in text
    assert "| `--by [" in text.partition("\n## turnlog usage\n")[2]
    assert "turnlog hub push" in {each.name for each in command_texts()}


def test_the_page_of_operations_has_every_operation(sources: Path) -> None:
    text = (sources / "reference" / "http-operations.md").read_text()
    assert "\n## GET /api/sessions/{session_id}\n" in text
    assert "| `limit (query)` |" in text.partition("\n## GET /api/sessions\n")[2]


def test_the_manual_has_every_command_with_its_options() -> None:
    """A wheel carries it; `make wheel` writes it anew."""
    page = man_page()
    for each in command_texts():
        assert f".SS {each.name}\n".replace("-", "\\-") in page or each.name == "turnlog"
    assert r"\-\-since" in page.partition(".SS turnlog usage\n")[2].partition(".SS ")[0]
    kept = (ROOT / "man" / "turnlog.1").read_text()
    assert kept.splitlines()[0].startswith('.TH TURNLOG 1 "" "turnlog ')


def test_the_manual_begins_no_line_with_a_request_by_accident() -> None:
    requests = {line.split()[0] for line in man_page().splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".SS", ".B", ".PP", ".TP", ".nf", ".fi", ".RS", ".RE"}


def test_the_bill_of_materials_names_every_package_with_its_licence() -> None:
    components = {str(each.purl): each for each in bill_of_materials().components}
    pinned = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements/runtime.lock").read_text(), re.MULTILINE)
    assert {f"pkg:pypi/{name}@{version}" for name, version in pinned} <= set(components)
    assert any(purl.startswith("pkg:npm/react@") for purl in components)
    assert not any("vite@" in purl for purl in components)
    (msgspec,) = (each for purl, each in components.items() if purl.startswith("pkg:pypi/msgspec@"))
    assert "BSD-3-Clause" in str(list(msgspec.licenses))


def test_code_in_tables_has_plain_bars(sources: Path) -> None:
    """A command that is copied from the page has to work."""
    assert with_bars("| `a \\| b` | c \\| d |\n`a \\| b`") == "| `a | b` | c \\| d |\n`a \\| b`"
    for page in sources.rglob("*.md"):
        rows = "\n".join(line for line in page.read_text().splitlines() if line.startswith("|"))
        assert [code for code in CODE.findall(rows) if "\\|" in code] == []
