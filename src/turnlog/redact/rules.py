"""All rules, in order. A rule is tried only on texts that hold one of its literals.

Every pattern has bounds, so that the time for a text grows with its length alone.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

from turnlog.redact.calls import CALLS
from turnlog.redact.commands import COMMANDS
from turnlog.redact.contexts import BLOCKS, OPTIONS, PLACES
from turnlog.redact.printed import PRINTED
from turnlog.redact.rule import Rule
from turnlog.redact.tokens import TOKENS

RULES: tuple[Rule, ...] = (*TOKENS, *BLOCKS, *PLACES, *COMMANDS, *CALLS, *PRINTED, *OPTIONS)
"""In the order in which they are tried: who issued a secret says more than its position."""


@cache
def rules_digest() -> str:
    """Of the program that finds secrets: another one may find others."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
