"""Secrets out of what leaves this machine: any text, JSON or value of the model, with a report of what was masked.

A secret is recognised by its own shape (`rules`: keys and tokens of known issuers, key blocks, connection strings,
headers) or by the name that it is given (`password = …`). Placeholders are no secrets (`placeholders`). The report
names rules, places and counts, never a secret. What no shape and no name tells stays; people's names are no secrets.
"""

from turnlog.redact.masking import mask_text
from turnlog.redact.redactor import Masked, Redactor
from turnlog.redact.rules import RULES, Rule

__all__ = ["RULES", "Masked", "Redactor", "Rule", "mask_text"]
