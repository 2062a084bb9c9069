import subprocess
import sys

from turnlog import __version__


def test_python_dash_m_runs_the_command() -> None:
    asked = [sys.executable, "-m", "turnlog", "--version"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == f"turnlog {__version__}\n"
