"""Google Gemini."""

from turnlog.providers.google.request import to_request

name = "gemini"

__all__ = ["name", "to_request"]
