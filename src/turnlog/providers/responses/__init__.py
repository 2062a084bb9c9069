"""OpenAI Responses."""

from turnlog.providers.base import Provider
from turnlog.providers.responses.request import to_request
from turnlog.providers.responses.response import ResponsesAssembler, from_response

PROVIDER = Provider(name="responses", to_request=to_request, from_response=from_response, assembler=ResponsesAssembler)
