"""What may be where a file is expected, and programs for whom a mode counts although root has started them."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Kind = Callable[[Path], AbstractContextManager[None]]
"""Puts something at a path while it is entered."""


@contextmanager
def _pipe(path: Path) -> Generator[None]:
    os.mkfifo(path)
    yield


@contextmanager
def _socket(path: Path) -> Generator[None]:
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as bound:
        # Its own path may be longer than an address can be.
        os.chdir(path.parent)
        bound.bind(path.name)
        os.chdir(here)
        yield


@contextmanager
def _link(path: Path) -> Generator[None]:
    path.symlink_to(path.parent.parent / "outside")
    yield


OTHER_KINDS: dict[Kind, str] = {_pipe: "a pipe", _socket: "a socket", _link: "a symbolic link"}


def heed_modes() -> None:
    """Let the program that is about to start read and write only what modes allow, whoever starts it."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH of linux/capability.h
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP; fails for who has none of them anyway
