"""The lines of a log as records."""

from __future__ import annotations

import msgspec

from turnlog.agents.claude_code.complete_record import CompleteRecord
from turnlog.agents.claude_code.kinds import TYPES
from turnlog.agents.claude_code.records import FIRST_KEYS, Record
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import JsonLines


def _is_record(record: Record) -> bool:
    return record.type in TYPES


read_lines = JsonLines(Record, first_keys=FIRST_KEYS, plausible=_is_record, complete=CompleteRecord).read
"""Reads records out of bytes: see `turnlog.agents.jsonl.JsonLines.read`."""

decode_record = msgspec.json.Decoder(Record).decode

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def fields_of(json: bytes) -> dict[str, msgspec.Raw]:
    """The fields of a record as exact JSON."""
    return _decode_fields(clean_json(json))
