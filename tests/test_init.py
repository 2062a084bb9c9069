import subprocess
import sys
from importlib.metadata import version

import turnlog

HEAVY = ("click", "fastapi", "genai_prices", "pydantic", "rich", "sqlite3", "starlette", "uvicorn")


def test_the_version_is_the_installed_one() -> None:
    assert turnlog.__version__ == version("turnlog")


def test_importing_turnlog_pulls_in_no_web_command_or_database_package() -> None:
    script = f"import sys, turnlog; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
