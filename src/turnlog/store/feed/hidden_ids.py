"""Ids as they are sent where ids may be words: hashed, and the same on every machine of a person."""

from __future__ import annotations

from hashlib import blake2b
from typing import Self


class HiddenIds:
    """Hashes ids, the same way for everybody with this salt and this secret."""

    def __init__(self, salt: str, secret: str = "") -> None:
        """Both may have any length. Without a secret, whoever knows the salt can guess what was hashed."""
        self._salt = _digest(salt)
        self._secret = _digest(f"{salt}/{secret}") if secret else None

    @classmethod
    def of_person(cls, team: int | str, user: str, secret: str = "") -> Self:
        """For the ids of a person in a team of a hub, which has a secret for each; none if it is an older one."""
        return cls(f"{team}/{user}", secret)

    def hash(self, text: str) -> str:
        """A name that says nothing."""
        return self._again(_keyed(text, self._salt))

    def session(self, session_id: str) -> str:
        """The id of a session on the hub."""
        return self.renewed(self.earlier(session_id))

    def earlier(self, session_id: str) -> str:
        """The id that a session had on the hub before there were secrets."""
        agent, _, external_id = session_id.partition(":")
        return f"{agent}:{_keyed(external_id, self._salt)}"

    def renewed(self, earlier: str) -> str:
        """The id on the hub of a session that had this one before there were secrets."""
        agent, _, external_id = earlier.partition(":")
        return f"{agent}:{self._again(external_id)}"

    def _again(self, hashed: str) -> str:
        # A hash of the earlier hash: the hub, which has only that, finds what it is called now.
        return hashed if self._secret is None else _keyed(hashed, self._secret)


def _keyed(text: str, key: bytes) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=16, key=key).hexdigest()


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=32).digest()
