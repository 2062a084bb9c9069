"""Sessions handed to another agent: written in its own format and home, with a report of what cannot be carried.

`plan` shows what would be written and lost, `HandoffPlan.write` writes it, `undo` removes it. The agents' packages
write (`turnlog.agents.handoffs`); what is common to all of them is here. `docs/reference/handoff.md` has the rules.
"""

from turnlog.handoff.plan import HandoffPlan, plan
from turnlog.handoff.report import HandoffLoss, LossSummary
from turnlog.handoff.targets import Target, targets
from turnlog.handoff.undo import undo
from turnlog.handoff.windows import Window

__all__ = ["HandoffLoss", "HandoffPlan", "LossSummary", "Target", "Window", "plan", "targets", "undo"]
