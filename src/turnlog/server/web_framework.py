"""The import of the web framework, which is most of what a browser waits for when the server starts."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

from turnlog.garbage_collection import garbage_collection_paused


@contextmanager
def importing_web_framework() -> Generator[None]:
    """Import FastAPI, and then what the body imports, without collecting garbage meanwhile.

    FastAPI's models of OpenAPI documents are completed when one is used first: a fifth of its time is theirs, and no
    answer but the document needs them.
    """
    with garbage_collection_paused():
        _import_fastapi()
        yield


def _import_fastapi() -> None:
    from pydantic import BaseModel

    config = BaseModel.model_config
    # Models inherit it: https://docs.pydantic.dev/latest/api/config/#pydantic.config.ConfigDict.defer_build
    BaseModel.model_config = {**config, "defer_build": True}
    try:
        import_module("fastapi")
    finally:
        BaseModel.model_config = config
