"""Keys of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def keys_kept() -> Generator[None]:
    """Keep keys that are typed before a program reads them, and do not show them; afterwards all is as it was.

    Windows shows them.
    """
    try:
        import termios
        import tty
    except ModuleNotFoundError:
        yield
        return
    before = termios.tcgetattr(sys.stdin.fileno())
    tty.setcbreak(sys.stdin.fileno(), termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)
