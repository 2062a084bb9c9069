"""Sessions as trajectories of the Agent Trajectory Interchange Format, ATIF (written to its version 1.8)."""

from turnlog.formats.atif.writer import AtifConversation, AtifDocument, AtifOmission, to_atif

__all__ = ["AtifConversation", "AtifDocument", "AtifOmission", "to_atif"]
