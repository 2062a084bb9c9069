"""The parts of a message that is being read, and what is still on its way into them.

Parts are frozen, so a snapshot shares them with the reader. What comes in small pieces (text, tool input) waits in a
`Pending` until somebody looks at the part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec.structs import replace

from turnlog.aisdk.json_text import ends_torn, join_surrogates
from turnlog.aisdk.parts import StepStartUIPart, UIMessagePart


class Pending(Protocol):
    """Something that will change a part."""

    def settle(self, part: Any) -> Any:
        """The part with everything that came in."""
        ...


class PartList:
    """Parts by position, and where the current step begins: after the last `step-start`."""

    def __init__(self, parts: Iterable[UIMessagePart] = ()) -> None:
        self._parts = list(parts)
        self._pending: dict[int, Pending] = {}
        starts = [index for index, part in enumerate(self._parts) if isinstance(part, StepStartUIPart)]
        self.step_start = starts[-1] + 1 if starts else 0

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> UIMessagePart:
        if index in self._pending:
            self._parts[index] = self._pending.pop(index).settle(self._parts[index])
        return self._parts[index]

    def __setitem__(self, index: int, part: UIMessagePart) -> None:
        self._pending.pop(index, None)
        self._parts[index] = part

    def unsettled(self, index: int) -> UIMessagePart:
        """The part as it is, without what is pending."""
        return self._parts[index]

    def defer(self, index: int, pending: Pending) -> None:
        """Let `pending` change the part when somebody looks."""
        self._pending[index] = pending

    def push(self, part: UIMessagePart) -> int:
        """Append a part; return its position, which stays until a reset."""
        self._parts.append(part)
        return len(self._parts) - 1

    def start_step(self) -> None:
        """Begin a step."""
        self.step_start = self.push(StepStartUIPart()) + 1

    def reset_step(self) -> bool:
        """Take back the parts of the current step; say whether there were any."""
        dropped = len(self._parts) > self.step_start
        del self._parts[self.step_start :]
        self._pending = {index: pending for index, pending in self._pending.items() if index < self.step_start}
        return dropped

    def snapshot(self) -> tuple[UIMessagePart, ...]:
        """All parts as they are now."""
        for index, pending in self._pending.items():
            self._parts[index] = pending.settle(self._parts[index])
        self._pending.clear()
        return tuple(self._parts)


class OpenText:
    """A text or reasoning part that has begun, with the deltas that are not yet in it."""

    __slots__ = ("_pieces", "_torn", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self._pieces: list[str] = []
        self._torn = False

    def add(self, delta: str) -> None:
        """Take a delta."""
        self._pieces.append(delta)
        if ends_torn(delta):
            self._torn = True

    def settle(self, part: Any) -> Any:
        """The part with all deltas."""
        text = part.text + "".join(self._pieces)
        self._pieces.clear()
        return replace(part, text=join_surrogates(text) if self._torn else text)
