"""OpenAI Responses."""

from turnlog.providers.openai_responses.request import to_request

name = "responses"

__all__ = ["name", "to_request"]
