"""OpenRouter: Chat Completions for the models of many providers."""

from turnlog.providers.openrouter.request import to_request

name = "openrouter"

__all__ = ["name", "to_request"]
