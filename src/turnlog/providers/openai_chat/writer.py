"""Messages of Chat Completions, whoever serves them: what becomes of reasoning is the subclass's decision (R-K23).

Results follow their calls as `tool` messages in the order of the calls; images and files in them come in a user
message behind the last, since a `tool` message holds text only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from turnlog.model import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers import wire
from turnlog.providers.base import Report
from turnlog.providers.files import FileLimits

FILES = FileLimits(
    files=frozenset({"application/pdf", "audio/wav", "audio/mp3", "audio/mpeg", "audio/x-wav"}), file_addresses=False
)

_ATTACHED = "Attached image(s) from tool result:"
_ONLY_ATTACHED = "(see the attached files)"
_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}

WireMessage = dict[str, Any]


class ChatWriter(ABC):
    """Writes messages one after another."""

    def __init__(self, model: str, report: Report, *, text_lists: bool) -> None:
        """Begin with none; `text_lists`: several texts of a user stay parts of their own."""
        self.model = model
        self.report = report
        self.messages: list[WireMessage] = []
        self._text_lists = text_lists

    @abstractmethod
    def reasoning_fields(self, message: Message) -> WireMessage:
        """Fields of an answer that carry its reasoning, and tell what is lost of it."""

    @abstractmethod
    def reasoning_text(self, part: ReasoningPart, message: Message) -> str | None:
        """What is said of reasoning in the text, in its place; None: nothing."""

    def add_system(self, texts: tuple[str, ...]) -> None:
        """The system text, once."""
        if texts:
            self.messages.append({"role": "system", "content": "\n\n".join(texts)})

    def add(self, message: Message) -> None:
        """Append what a message and the results of its calls become."""
        if message.role == "user":
            self._add_user(message)
            return
        calls = [part for part in message.parts if isinstance(part, ToolCallPart) and not part.provider_executed]
        fields = self.reasoning_fields(message)
        text = self._answer_text(message)
        if not text and not calls:
            if fields:
                self.report.mend("trailing-reasoning", message.id, "left out: nothing follows it")
            return
        answer: WireMessage = {"role": "assistant", "content": text or None, **fields}
        if calls:
            answer["tool_calls"] = [_tool_call(call) for call in calls]
        self.messages.append(answer)
        self._add_results(calls, message)

    def _add_user(self, message: Message) -> None:
        parts = [found for part in message.parts for found in _user_parts(part)]
        if parts:
            self.messages.append({"role": "user", "content": self._content(parts)})

    def _content(self, parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        """A plain string where one says the same: not every server takes lists of texts."""
        only_text = all(part["type"] == "text" for part in parts)
        if only_text and (len(parts) == 1 or not self._text_lists):
            return "\n".join([part["text"] for part in parts])
        return parts

    def _answer_text(self, message: Message) -> str:
        """All text of an answer. What reasoning or a call stood between stays apart."""
        runs: list[list[str]] = [[]]
        for part in message.parts:
            text = self._text_in_place(part, message)
            if not isinstance(part, TextPart):
                runs += [[text], []] if text else [[]]
            elif text:
                runs[-1].append(text)
        return "\n\n".join([run for pieces in runs if (run := "".join(pieces)).strip()])

    def _text_in_place(self, part: Part, message: Message) -> str | None:
        if isinstance(part, TextPart):
            wire.lose_citations(part, message, self.report)
            return part.text
        if isinstance(part, ReasoningPart):
            return self.reasoning_text(part, message)
        if isinstance(part, ToolCallPart):
            return wire.server_tool_text(part, message, self.report) if part.provider_executed else None
        return None

    def _add_results(self, calls: list[ToolCallPart], message: Message) -> None:
        attached: list[dict[str, Any]] = []
        for call in calls:
            result = wire.result_of(call)
            files = wire.result_files(result)
            text = wire.result_text(result)
            wire.lose_status(call, message, self.report)
            content = text if text.strip() or not files else _ONLY_ATTACHED
            self.messages.append({"role": "tool", "tool_call_id": call.tool_call_id, "content": content})
            attached += [_file(part) for part in files]
        if attached:
            self.messages.append({"role": "user", "content": [_text(_ATTACHED), *attached]})


def _user_parts(part: Part) -> list[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [_text(part.text)] if part.text.strip() else []
    return [_file(part)] if isinstance(part, FilePart) else []


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool_call(call: ToolCallPart) -> dict[str, Any]:
    function = {"name": call.tool_name, "arguments": wire.arguments_text(call)}
    return {"id": call.tool_call_id, "type": "function", "function": function}


def _file(part: FilePart) -> dict[str, Any]:
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": wire.data_url(part)}}
    if part.media_type in _AUDIO_FORMATS:
        audio = {"data": wire.encoded(part), "format": _AUDIO_FORMATS[part.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    return {"type": "file", "file": {"filename": part.filename or "file.pdf", "file_data": wire.data_url(part)}}
