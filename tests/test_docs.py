"""Pages lead to each other: every link to a file or to a heading finds it, and the index leads to every page.

What the architecture page names exists.
"""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def links(page: Path) -> list[str]:
    """Where a page leads to inside the project."""
    return [link for link in LINK.findall(CODE.sub("", page.read_text())) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as sites make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        # Of two pictures, the anchor says for which mode one is.
        assert not anchor or target.suffix == ".png" or anchor in anchors(target), link


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs/index.md"
    linked = {(index.parent / link).resolve() for link in links(index)}
    formats = ROOT / "docs/formats/index.md"
    linked |= {(formats.parent / link).resolve() for link in links(formats)}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - linked == {index}


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/index.md" in links(ROOT / "README.md")


def test_the_architecture_names_what_exists() -> None:
    """A page that follows the data through modules and functions is wrong as soon as one of them is renamed."""
    package = ROOT / "src" / "turnlog"
    rooms = "|".join(path.stem for path in package.iterdir() if path.suffix == ".py" or path.is_dir())
    names = re.findall(rf"`((?:{rooms})(?:\.\w+)+)", (ROOT / "docs/explanation/architecture.md").read_text())
    assert names
    for name in names:
        resolve_name(f"turnlog.{name}")
