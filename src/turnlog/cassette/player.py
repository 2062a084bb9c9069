"""Plays a cassette: gives each request the recorded answer, or says where it leaves the recording.

The bookkeeping of what was played; `server` puts it behind a socket.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import NamedTuple

from turnlog.cassette.apis import Api
from turnlog.cassette.conversation import Conversation
from turnlog.cassette.matching import Mismatch, compare
from turnlog.cassette.tape import Cassette, EarlierAnswer, Entry, Exchange, Track, requests_of
from turnlog.model import Message, TextPart
from turnlog.providers.body import Json, word


class _Playing:
    """One track, and how far it was played."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self._requests = list(requests_of(track))
        self.played = 0

    @property
    def left(self) -> int:
        return len(self._requests) - self.played

    def next(self) -> tuple[tuple[Entry, ...], Exchange]:
        return self._requests[self.played]


class _Attempt(NamedTuple):
    """A request beside the next exchange of one track."""

    playing: _Playing
    mismatch: Mismatch


class Player:
    """A cassette that is being played. May be asked from several threads."""

    def __init__(self, cassette: Cassette, name: str, *, ignore: Sequence[str] = (), aside: str | None = None) -> None:
        """Rewind the cassette.

        Args:
            cassette: What is played.
            name: What it is called in failures.
            ignore: Regular expressions (`.` is any character) of what is not compared in any text.
            aside: The answer to requests that offer no tools and are not recorded, such as one for a title.
        """
        self.url = ""
        """Where it is served: `http://127.0.0.1:<port>`."""
        self.requests: list[Json] = []
        """The bodies of all requests so far, asides and wrong ones too."""
        self.failures: list[str] = []
        """Why requests were refused."""
        self._name = name
        self._ignored = [re.compile(pattern, re.DOTALL) for pattern in ignore]
        self._aside = aside
        self._tracks = [_Playing(track) for track in cassette.tracks]
        self._contexts: dict[str, tuple[Entry, ...]] = {}
        self._lock = threading.Lock()

    def answer(self, api: Api, body: Json) -> Message | None:
        """The recorded answer to a request; None where it is refused, and the last of `failures` says why."""
        with self._lock:
            self.requests.append(body)
            sent, unknown = self._conversation(api, body)
            attempts: list[_Attempt] = []
            for playing in [each for each in self._tracks if each.left]:
                context, exchange = playing.next()
                mismatch = compare(context, sent, self._ignored)
                if mismatch is None:
                    playing.played += 1
                    return self._given(context, exchange.answer)
                attempts.append(_Attempt(playing, mismatch))
            if self._aside is not None and not body.get("tools"):
                return Message(id="aside", role="assistant", parts=(TextPart(text=self._aside),))
            self.failures.append(self._refusal(attempts, unknown))
            return None

    def take_back(self, answer: Message) -> None:
        """Take an answer for not given: nobody got all of it, and who asked may ask again."""
        with self._lock:
            for playing in self._tracks:
                if playing.played and playing.track.exchanges[playing.played - 1].answer is answer:
                    playing.played -= 1

    def unplayed(self) -> list[str]:
        """What of the cassette was not asked for."""
        return [
            f"cassette {self._name}: {each.left} of {len(each.track.exchanges)} answers of {each.track.session} "
            "were not asked for"
            for each in self._tracks
            if each.left
        ]

    def _conversation(self, api: Api, body: Json) -> tuple[Conversation, str | None]:
        """What a request says, behind what it goes on from; and the id of a response that was not given here."""
        sent = Conversation(self._ignored)
        previous = word(body.get("previous_response_id"))
        for entry in self._contexts.get(previous or "", ()):
            sent.add(entry)
        api.read(body, sent)
        return sent, previous if previous not in self._contexts else None

    def _given(self, context: tuple[Entry, ...], answer: Message) -> Message:
        self._contexts[answer.response_id or answer.id] = (*context, EarlierAnswer(parts=answer.parts))
        return answer

    def _refusal(self, attempts: list[_Attempt], unknown: str | None) -> str:
        told = f"cassette {self._name}: request {len(self.requests)}"
        if unknown is not None:
            return f"{told} goes on from the response {unknown}, which was not given here"
        if not attempts:
            return f"{told} is one too many: all recorded answers were given"
        playing, mismatch = max(attempts, key=lambda attempt: attempt.mismatch.turn)
        track = playing.track
        place = f"exchange {playing.played + 1} of {len(track.exchanges)} of {track.session}"
        return f"{told} is not the recorded one ({place})\n{mismatch.diff}"
