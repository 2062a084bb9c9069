"""Ids as they are sent where ids may be words: hashed, and the same on every machine of a person."""

from __future__ import annotations

from hashlib import blake2b
from typing import Self


class HiddenIds:
    """Hashes ids, the same way for everybody with this salt."""

    def __init__(self, salt: str) -> None:
        """`salt` may have any length."""
        self._salt = blake2b(salt.encode(), digest_size=32).digest()

    @classmethod
    def of_person(cls, team: int | str, user: str) -> Self:
        """For the ids of a person in a team of a hub."""
        return cls(f"{team}/{user}")

    def hash(self, text: str) -> str:
        """A name that says nothing."""
        return blake2b(text.encode(errors="replace"), digest_size=16, key=self._salt).hexdigest()

    def session(self, session_id: str) -> str:
        """The id of a session on the hub."""
        agent, _, external_id = session_id.partition(":")
        return f"{agent}:{self.hash(external_id)}"
