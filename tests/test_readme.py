"""What the README shows is true: its Python runs and prints what stands below it, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
LINKS = re.findall(r"\]\(([^):#]+)\)", README)


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_an_example_prints_what_the_readme_says(code: str, output: str, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == output


def test_every_python_block_is_an_example_that_runs() -> None:
    assert len(EXAMPLES) == README.count("```python") > 0


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).is_file()
