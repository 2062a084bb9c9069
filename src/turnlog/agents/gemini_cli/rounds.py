"""Answers of several requests that stand in one message: one message a request again.

Up to 0.30 the calls of a request that came without words were added to the message before, which kept the tokens of
its first request. The calls of a request were logged together: since 0.2x their ids are numbered from 0, and before
that they have one time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec
from msgspec import UNSET

from turnlog.agents.gemini_cli.calls import number_of, places_of
from turnlog.agents.gemini_cli.logged import Logged
from turnlog.agents.gemini_cli.reading import aware_or_none
from turnlog.agents.gemini_cli.records import CALLS, Call

_AT_ONCE = timedelta(milliseconds=10)

_Place = tuple[msgspec.Raw, int, int]


def split_rounds(logged: Logged) -> Iterator[Logged]:
    """The message as its first request left it, then one for the calls of each later request."""
    record = logged.record
    rounds = list(_rounds(list(places_of(record.tool_calls or (), logged.json, logged.position))))
    if len(rounds) < 2:
        yield logged
        return
    yield logged._replace(record=msgspec.structs.replace(record, tool_calls=[raw for raw, *_ in rounds[0]]))
    for number, places in enumerate(rounds[1:], 2):
        (_, start, _), (_, last, length) = places[0], places[-1]
        times = (_call_of(raw).timestamp for raw, *_ in places)
        yield Logged(
            record=msgspec.structs.replace(
                record,
                id=f"{record.id}.{number}",
                timestamp=next((time for time in times if time is not None), record.timestamp),
                content=UNSET,
                thoughts=None,
                tokens=None,
                tool_calls=[raw for raw, *_ in places],
            ),
            json=logged.json[start - logged.position : last + length - logged.position],
            position=start,
            length=last + length - start,
            is_later_round=True,
        )


def _rounds(places: list[_Place]) -> Iterator[list[_Place]]:
    """The calls, request by request."""
    current: list[_Place] = []
    before: Call | None = None
    for place in places:
        call = _call_of(place[0])
        if before is not None and _begins_round(before, call):
            yield current
            current = []
        current.append(place)
        before = call
    if current:
        yield current


def _begins_round(before: Call, call: Call) -> bool:
    number = number_of(call.id)
    if number is not None:
        return number == 0
    earlier, later = aware_or_none(before.timestamp), aware_or_none(call.timestamp)
    return earlier is not None and later is not None and abs(later - earlier) > _AT_ONCE


def _call_of(raw: msgspec.Raw) -> Call:
    found = CALLS.decode(bytes(raw))
    return Call() if isinstance(found, str) else found.record
