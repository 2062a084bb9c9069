import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

from turnlog import errors

ALL_ERRORS = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, Exception) and error.__module__ == errors.__name__
]


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_every_error_is_a_turnlog_error_and_is_drawn_in_the_tree(error: type[Exception]) -> None:
    assert issubclass(error, errors.TurnlogError)
    assert f" {error.__name__}" in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "no object"),
        ({"path": Path("/logs/a.jsonl")}, "/logs/a.jsonl: no object"),
        ({"line": 3}, "line 3: no object"),
        ({"path": Path("/logs/a.jsonl"), "line": 3}, "/logs/a.jsonl:3: no object"),
        (
            {"path": Path("/logs/a.jsonl"), "line": 3, "offset": 0, "json_path": "$.id"},
            "/logs/a.jsonl:3: no object (byte 0, at $.id)",
        ),
    ],
)
def test_a_source_error_leads_to_the_place(place: dict[str, Any], text: str) -> None:
    assert str(errors.FormatError("no object", **place)) == text


@pytest.mark.parametrize(
    "error",
    [
        errors.FormatError("no object", path=Path("a.jsonl"), line=2, offset=40, json_path="$.id"),
        errors.FormatError("of no agent", path=Path("a.txt"), of_agents=("Codex: no line is a JSON object",)),
        errors.LossyConversionError("a file cannot be sent", losses=("parts[3]",)),
        errors.StreamStateError("delta before start", chunk_type="text-delta", chunk_id="t1"),
        errors.SchemaTooNewError("written by a newer turnlog", found=9, supported=1),
        errors.StoreBusyError("locked for 5 s"),
        errors.StoreUnreachableError("the server is away"),
        errors.StoreFullError("no room"),
    ],
)
def test_an_error_comes_back_whole_from_another_process(error: errors.TurnlogError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
