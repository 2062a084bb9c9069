"""Google Gemini."""

from turnlog.providers.base import Provider
from turnlog.providers.gemini.request import to_request
from turnlog.providers.gemini.response import GeminiAssembler, from_response

PROVIDER = Provider(name="gemini", to_request=to_request, from_response=from_response, assembler=GeminiAssembler)
