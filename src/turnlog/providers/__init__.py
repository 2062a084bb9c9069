"""One history, every provider API: each turns messages into request bodies, and responses into messages.

No SDK is needed; the tests check every request and response with the providers' own types.
"""

from __future__ import annotations

from importlib import import_module

from turnlog.arguments import checked
from turnlog.providers.base import Provider

_MODULES = {
    "anthropic": "turnlog.providers.anthropic",
    "openai-chat": "turnlog.providers.openai_chat",
    "openrouter": "turnlog.providers.openrouter",
    "responses": "turnlog.providers.responses",
    "gemini": "turnlog.providers.gemini",
}
"""Imported when a provider is used: a command that needs none starts faster."""


def provider_names() -> list[str]:
    """The names of all provider APIs."""
    return list(_MODULES)


@checked
def provider(name: str) -> Provider:
    """A provider API by its name. Raises ValueError for an unknown name, with those that there are."""
    if name not in _MODULES:
        known = ", ".join(map(repr, _MODULES))
        hint = " (OpenAI has two APIs: 'responses' and 'openai-chat')" if name == "openai" else ""
        raise ValueError(f"there is no provider {name!r}: expected one of {known}{hint}")
    found: Provider = import_module(_MODULES[name]).PROVIDER
    return found
