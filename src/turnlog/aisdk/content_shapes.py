"""What stands inside of parts and chunks alike: citations, and what a user says in the middle of a run."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from turnlog.aisdk import checks
from turnlog.aisdk.checks import Check, Field, Fields

PROVIDER_METADATA = Field("providerMetadata", checks.metadata)

_CITATION_SOURCES = {
    "url": (
        Field("type", checks.one_of("source"), required=True),
        Field("sourceType", checks.one_of("url"), required=True),
        Field("id", checks.text, required=True),
        Field("url", checks.text, required=True),
        Field("title", checks.text),
        PROVIDER_METADATA,
    ),
    "document": (
        Field("type", checks.one_of("source"), required=True),
        Field("sourceType", checks.one_of("document"), required=True),
        Field("id", checks.text, required=True),
        Field("mediaType", checks.text, required=True),
        Field("title", checks.text, required=True),
        Field("filename", checks.text),
        PROVIDER_METADATA,
    ),
}


def named(fields: Iterable[Field]) -> Fields:
    """Fields by their names."""
    return MappingProxyType({field.name: field for field in fields})


citation = checks.object_of(
    named(
        (
            Field(
                "source",
                checks.chosen_by(
                    "sourceType",
                    {kind: checks.object_of(named(fields)) for kind, fields in _CITATION_SOURCES.items()},
                    "unknown kind of source",
                ),
                required=True,
            ),
            Field("startIndex", checks.index),
            Field("endIndex", checks.index),
            Field("citedText", checks.text),
        )
    )
)

_STEERING_TEXT = (
    Field("type", checks.anything),
    Field("text", checks.text, required=True),
    PROVIDER_METADATA,
)
_STEERING_FILE = (
    Field("type", checks.anything),
    Field("mediaType", checks.text, required=True),
    Field("url", checks.text, required=True),
    Field("filename", checks.text),
    Field("providerReference", checks.texts),
    PROVIDER_METADATA,
)


def steering_parts(foreign: checks.Foreign) -> Check:
    """The content of a steering message: texts and files, with or without the keys that nobody knows."""
    kinds = {"text": _STEERING_TEXT, "file": _STEERING_FILE}
    options = {kind: checks.object_of(named(fields), foreign) for kind, fields in kinds.items()}
    return checks.array_of(checks.chosen_by("type", options, "no part of a user's message"))
