"""What all queries share: times, positions, sizes of pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Annotated, Any, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from turnlog.errors import NotFoundError
from turnlog.server.context import Context
from turnlog.server.errors import InvalidParameterError
from turnlog.store.base import Store
from turnlog.store.names import (
    NAMES_OF_SESSIONS,
    check_agent,
    check_model,
    check_name_of_sessions,
    check_project,
    check_tool,
)
from turnlog.store.times import check_period, is_day, moment_of

LARGEST_POSITION = 2**62
"""Positions are 63-bit integers in the store; one more than the last must still be one."""


def _moment(value: Any, given: ValidationInfo) -> Any:
    """A time in the words of the command; days are those of `zone`, where a query has one before it, else local."""
    # A day was always its beginning here, also for `until`; a week, a month or a word holds to its end.
    ends = given.field_name == "until" and not (isinstance(value, str) and is_day(value))
    return _time(value, end=ends, zone=_zone_of((given.data or {}).get("zone")))


def _utc_moment(value: Any, given: ValidationInfo) -> Any:
    return _time(value, end=False, zone=UTC)


def _time(value: Any, *, end: bool, zone: tzinfo | None) -> Any:
    try:
        return moment_of(value, end=end, zone=zone) if isinstance(value, str) else value
    except ValueError as error:
        raise PydanticCustomError("moment", "{reason}", {"reason": str(error)}) from None


def _zone_of(name: object) -> tzinfo | None:
    """The time zone of a name; None, this machine's, for one that is refused elsewhere."""
    try:
        return None if not isinstance(name, str) else to_zone(name)
    except ValueError:
        return None


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "description": "A time: 2026-11-20T10:00:00Z, a day (2026-11-20), a month, today, yesterday, last-week, 7d."
            " Days are those of `zone`, else of the server's time zone.",
        }
    ),
]

UtcMoment = Annotated[
    datetime,
    BeforeValidator(_utc_moment),
    WithJsonSchema({"type": "string", "description": "As `Moment`, and days are of UTC."}),
]


def to_zone(name: str) -> tzinfo:
    """The time zone of a name; raises ValueError if there is none."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"{name!r} is not a time zone") from error


Position = Annotated[int, Field(ge=0, le=LARGEST_POSITION)]


SessionPosition = Annotated[int, Field(ge=-LARGEST_POSITION, le=LARGEST_POSITION)]
"""Of a message or event in its session. What a fork shares and has no copy of comes before its own, below zero."""


def _page_size(default: int, largest: int) -> BeforeValidator:
    def read(value: Any) -> int:
        try:
            size = int(value)
        except ValueError:
            return default
        return min(size, largest) if size > 0 else default

    return BeforeValidator(read)


def _page_schema(default: int, largest: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": 1, "maximum": largest, "default": default})


SmallPage = Annotated[int, _page_size(20, 100), _page_schema(20, 100)]


WindowSize = Annotated[int, _page_size(40, 200), _page_schema(40, 200)]


ListPage = Annotated[int, _page_size(50, 200), _page_schema(50, 200)]


LongPage = Annotated[int, _page_size(100, 500), _page_schema(100, 500)]


def _check_name_of_sessions(what: str, store: Store, text: str) -> None:
    check_name_of_sessions(store, what, text)


_CHECKS: Final[dict[str, Callable[[Store, str], None]]] = {
    **{"agent": check_agent, "project": check_project, "model": check_model, "tool": check_tool},
    # The last session that has a tag may lose it at any time, and a page asks whether a word is one.
    **{what: partial(_check_name_of_sessions, what) for what in NAMES_OF_SESSIONS if what != "tag"},
}
"""Filter by name -> what refuses a name that nothing has."""


def explain_nothing(context: Context, query: QueryParameters) -> None:
    """Called where a query finds nothing: that is no answer if nothing has a name that it asks for.

    While logs are read for the first time it is one: what has the name may come any moment.

    Raises InvalidParameterError with the near names.
    """
    if context.sync().is_first:
        return
    for field, check in _CHECKS.items():
        name = getattr(query, field, None)
        if name is not None:
            try:
                check(context.store, name)
            except NotFoundError as error:
                raise InvalidParameterError(field, str(error)) from error


class QueryParameters(BaseModel):
    """A query string: every parameter is known, an empty one is none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any) -> Any:
        """`?agent=` is a form's field that nobody filled in."""
        if not isinstance(values, dict):
            return values
        # What a query string was parsed into, before anybody has checked it.
        return {name: value for name, value in cast("dict[str, Any]", values).items() if value != ""}

    @field_validator("until", mode="after", check_fields=False)
    @classmethod
    def _check_period(cls, until: datetime | None, given: ValidationInfo) -> datetime | None:
        """A period that ends before it begins would answer as if nothing had happened in it."""
        since = given.data.get("since")
        try:
            check_period(since, until, may_be_empty=True)
        except ValueError as error:
            raise PydanticCustomError("period", "{reason}", {"reason": str(error)}) from None
        return until
