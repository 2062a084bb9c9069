"""The judges, for every test here."""

from ai_sdk_judge import judge

__all__ = ["judge"]
