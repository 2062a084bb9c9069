"""Prompts from the page: the session's own agent goes on with them, without a screen, in the session's folder.

Off unless the server was started for it (`Settings.prompts`), and never off loopback. What the agent may do is what its
own settings say; where they want a person asked, and the agent can ask without a screen, the page is (`asking`), and
otherwise the agent does without (`silent`). What it does comes to the page as with every session, by its log. Each is a
run, so that it is on record; one of a session at a time. They end with the server.
"""

from turnlog.server.prompts.asking import Question, can_ask
from turnlog.server.prompts.registry import Prompts, PromptState

__all__ = ["PromptState", "Prompts", "Question", "can_ask"]
