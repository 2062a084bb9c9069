"""Anthropic Messages API, and servers that speak it."""

from turnlog.providers.anthropic.request import to_request

name = "anthropic"

__all__ = ["name", "to_request"]
