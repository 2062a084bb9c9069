"""The judges, for every test here."""

from support.ai_sdk_judge import judge

__all__ = ["judge"]
