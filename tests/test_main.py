import subprocess
import sys

from turnlog import __version__


def test_python_dash_m_runs_the_command() -> None:
    arguments = [sys.executable, "-m", "turnlog", "--version"]
    assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout == f"turnlog {__version__}\n"


def test_an_interrupt_while_it_is_imported_is_reported_in_one_line() -> None:
    script = (
        "import builtins, sys; importing = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'click': raise KeyboardInterrupt\n"
        "    return importing(name, *rest)\n"
        "from turnlog.__main__ import main; builtins.__import__ = interrupted; main()"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (130, "turnlog: interrupted\n")
