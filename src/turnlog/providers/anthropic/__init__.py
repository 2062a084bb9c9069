"""Anthropic Messages API, and servers that speak it."""

from turnlog.providers.anthropic.request import to_request
from turnlog.providers.anthropic.response import AnthropicAssembler, from_response
from turnlog.providers.base import Provider

PROVIDER = Provider(name="anthropic", to_request=to_request, from_response=from_response, assembler=AnthropicAssembler)
