"""A recorded conversation as a test case: a server that plays the model's side of it again (R-S42).

`record` makes the cassette of sessions, `load_cassette` reads one from its file, `play` serves it on 127.0.0.1 as
Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini; `turnlog.cassette.plugin` is its pytest
fixture. Knows no store and no agent.
"""

TYPE_CHECKING = False
"""Type checkers take it for true. pytest imports this package in every run: names are imported when they are used."""

if TYPE_CHECKING:
    from turnlog.cassette.player import Player, play
    from turnlog.cassette.recording import Recorded, record
    from turnlog.cassette.tape import Cassette, load_cassette

__all__ = ["Cassette", "Player", "Recorded", "load_cassette", "play", "record"]

_HOMES = {
    "Cassette": "turnlog.cassette.tape",
    "Player": "turnlog.cassette.player",
    "Recorded": "turnlog.cassette.recording",
    "load_cassette": "turnlog.cassette.tape",
    "play": "turnlog.cassette.player",
    "record": "turnlog.cassette.recording",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
