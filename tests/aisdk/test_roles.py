from typing import Any

import pytest

from turnlog.aisdk import parse_ui_message, unusual_parts


@pytest.mark.parametrize(("role", "kind"), [("system", "file"), ("user", "tool-read")])
def test_a_part_that_is_unusual_for_its_role_is_a_warning(role: str, kind: str) -> None:
    """R-S12: the message is valid nevertheless."""
    odd: dict[str, Any] = {"type": kind}
    if kind == "file":
        odd |= {"mediaType": "image/png", "url": "data:,"}
    else:
        odd |= {"toolCallId": "c", "state": "input-available", "input": {}}
    message = parse_ui_message({"id": "m", "role": role, "parts": [{"type": "text", "text": "a"}, odd]})
    assert unusual_parts(message) == [("$.parts[1]", role, kind)]


def test_an_assistant_may_say_anything() -> None:
    parts = [{"type": "step-start"}, {"type": "data-x", "data": 1}]
    assert unusual_parts(parse_ui_message({"id": "m", "role": "assistant", "parts": parts})) == []
