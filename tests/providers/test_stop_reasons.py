"""Every word for an end that a provider's SDK knows has one of ours (R-K28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import anthropic.types
import openai.types.chat.chat_completion as chat
import openai.types.responses as responses
import openai.types.responses.response as response
import pytest
from google.genai.types import BlockedReason, FinishReason

from turnlog.anthropic_api import STOP_REASONS as ANTHROPIC
from turnlog.model.message import StopReason
from turnlog.providers.gemini import PROVIDER as gemini
from turnlog.providers.gemini.response import STOP_REASONS as GOOGLE
from turnlog.providers.openai_chat.response import STOP_REASONS as CHAT
from turnlog.providers.responses.response import STOP_REASONS as RESPONSES


def words(annotation: Any) -> set[str]:
    """The words of a Literal, whatever is around it."""
    found = get_args(annotation)
    return {word for each in found for word in ([each] if isinstance(each, str) else words(each))}


RUNNING = {"queued", "in_progress"}
"""They are no end; and `incomplete` is known by its reason."""

KNOWN: dict[str, tuple[set[str], Mapping[str, StopReason]]] = {
    "anthropic": (words(anthropic.types.StopReason), ANTHROPIC),
    "chat": (words(chat.Choice.model_fields["finish_reason"].annotation), CHAT),
    "responses": (
        (words(responses.ResponseStatus) | words(response.IncompleteDetails.model_fields["reason"].annotation))
        - RUNNING
        - {"incomplete"},
        RESPONSES,
    ),
    "gemini": ({reason.value for reason in FinishReason} - {"FINISH_REASON_UNSPECIFIED"}, GOOGLE),
}


@pytest.mark.parametrize("api", KNOWN)
def test_every_word_for_an_end_has_one_of_ours(api: str) -> None:
    """R-K28."""
    known, ours = KNOWN[api]
    assert len(known) >= 4
    assert known <= set(ours)
    assert set(ours.values()) <= set(get_args(StopReason))


@pytest.mark.parametrize("reason", list(BlockedReason))
def test_every_prompt_that_was_blocked_was_filtered(reason: BlockedReason) -> None:
    """R-K28."""
    message = gemini.from_response({"promptFeedback": {"blockReason": reason.value}})
    assert (message.stop_reason, message.raw_stop_reason) == ("content_filter", reason.value)
