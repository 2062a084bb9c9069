"""One history, every provider API: a module an API, each turning messages into request bodies and back.

No SDK is needed; the tests check what is built with the providers' own.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from turnlog.providers.base import Provider

_MODULES = {
    "anthropic": "turnlog.providers.anthropic",
    "openai-chat": "turnlog.providers.openai_chat",
    "openrouter": "turnlog.providers.openrouter",
    "responses": "turnlog.providers.openai_responses",
    "gemini": "turnlog.providers.google",
}


def provider_names() -> list[str]:
    """The names of all provider APIs."""
    return list(_MODULES)


def provider(name: str) -> Provider:
    """A provider API by its name. Raises KeyError where there is none of this name."""
    return cast("Provider", import_module(_MODULES[name]))
