"""Work without the garbage collector, where all that is made is kept or goes by itself."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def garbage_collection_paused() -> Generator[None]:
    """Collect nothing meanwhile: what makes many objects and no cycles would be scanned again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
