"""Secrets out of what leaves this machine: any text, JSON or value of the model, with a report of what was masked.

A secret is recognised by its own shape or its context (`rules`: tokens of known issuers, key blocks, headers, options
of commands) or by its name (`names`: `password = …`), and from then on wherever it stands alone (`known`). Placeholders
are no secrets (`placeholders`). The report contains rules, places and counts, never a secret. A secret without a known
shape, context or name stays.
"""

from turnlog.redact.edges import mask_cut_text
from turnlog.redact.known import KnownValues
from turnlog.redact.masking import mask_text
from turnlog.redact.redactor import Learned, Masked, Redactor
from turnlog.redact.rule import Rule
from turnlog.redact.rules import RULES, rules_digest

__all__ = [
    "RULES",
    "KnownValues",
    "Learned",
    "Masked",
    "Redactor",
    "Rule",
    "mask_cut_text",
    "mask_text",
    "rules_digest",
]
