"""The list of requirements and the tests that cite it speak of the same rows."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"\bR-[SCHKO]\d+\b")
RANGE = re.compile(r"\bR-[SCHKO]\d+ (?:to|-) R-[SCHKO]\d+")
TESTS = ("*.py", "*/*.py", "*/*/*.py")
"""Where tests lie: walking all of tests/ would visit the recorded logs and the packages of the conformance tests."""
ROWS_OF = {"S": 43, "C": 22, "H": 18, "K": 30, "O": 27}


REQUIREMENTS = ROOT / "docs" / "reference" / "requirements.md"


def listed() -> list[str]:
    return re.findall(r"^\| (R-[SCHKO]\d+) \| (?!`tests/)", REQUIREMENTS.read_text(), re.MULTILINE)


def test_every_row_appears_once_and_none_is_missing() -> None:
    expected = {f"R-{letter}{number}": 1 for letter, rows in ROWS_OF.items() for number in range(1, rows + 1)}
    assert Counter(listed()) == expected


def test_a_test_that_the_list_names_cites_its_row() -> None:
    proofs = re.findall(r"^\| (R-[SCHKO]\d+) \| (`tests/.*) \|$", REQUIREMENTS.read_text(), re.MULTILINE)
    assert proofs
    for row, tests in proofs:
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests):
            docstring = re.search(rf'^def {name}\(.*?"""(.*?)"""', (ROOT / path).read_text(), re.MULTILINE | re.DOTALL)
            assert docstring, name
            assert row in docstring[1], (row, name)


def test_every_row_is_cited_by_name_and_every_row_that_is_cited_is_listed() -> None:
    """A range names nothing: who reads of R-S1 to R-S3 in a test does not know whether it proves R-S2."""
    files = [path for pattern in TESTS for path in (ROOT / "tests").glob(pattern) if path != Path(__file__)]
    files += (ROOT / "web" / "tests").glob("*.ts*")
    cited = {row for path in files for row in ROW.findall(RANGE.sub("", path.read_text()))}
    assert cited == set(listed())
