"""The model of answers that do not name it themselves.

Up to about 1.0.27 an answer has no `model`. Records around it say which one was chosen, for which one a tool ran, or
which one is counted at the end of the run. A model that is known only by them is marked
(`model_from` in the metadata of the message).
"""

from __future__ import annotations

from typing import Any

from turnlog.agents.copilot_cli import NAME
from turnlog.agents.copilot_cli.fold_context import CopilotContext
from turnlog.agents.copilot_cli.records import CopilotData
from turnlog.agents.copilot_cli.state import MOST_UNNAMED, CopilotUnnamedAnswer
from turnlog.agents.decoding import keep_newest
from turnlog.model import Message
from turnlog.model.message import MODEL_FROM

_NO_MODELS = frozenset({"", "auto"})
"""Choices that leave the model to the program."""


def known(model: str | None) -> str | None:
    """The name of a model; None for a choice that names none."""
    return None if model is None or model in _NO_MODELS else model


def read_run(context: CopilotContext, data: CopilotData) -> None:
    """Read the model with which a run begins. It says nothing of the answers of the run before."""
    context.state.unnamed = {}
    if known(data.selected_model) is not None:
        _use(context, data.selected_model)


def read_choice(context: CopilotContext, data: CopilotData) -> None:
    """Read which model was chosen for the answers that follow, and which one it replaces."""
    name_answers(context, known(data.previous_model))
    for answer in context.state.unnamed.values():
        answer.before_change |= answer.agent == context.agent
    _use(context, known(data.new_model))


def read_model_in_use(context: CopilotContext, model: str | None) -> None:
    """Take over the model that a record names as the one in use. It has given the answers without one, too."""
    if known(model) is not None:
        name_answers(context, known(model))
        _use(context, known(model))


def read_last_models(context: CopilotContext, data: CopilotData) -> None:
    """Name the answers of a run by what its end says, if it names one model only."""
    models = [model for model in data.model_metrics or {} if known(model) is not None]
    if len(models) == 1:
        _name(context, list(context.state.unnamed), models[0])
    elif not models:
        name_answers(context, known(data.current_model))


def name_answers(context: CopilotContext, model: str | None) -> None:
    """Name the answers of the record's conversation since another model was chosen."""
    if model is not None:
        unnamed = context.state.unnamed.items()
        _name(context, [key for key, it in unnamed if it.agent == context.agent and not it.before_change], model)


def model_of_answer(context: CopilotContext, message_id: str, model: str | None, output: int) -> dict[str, Any]:
    """The fields of an answer that name its model, which it has itself, or else the records before it.

    An answer whose model is not known yet is remembered, with the output tokens that it counts.
    """
    conversation = context.conversation
    if known(model) is not None:
        context.state.unnamed.pop(message_id, None)
        _use(context, model)
        return {"model": model}
    if conversation.model is not None:
        return {"model": conversation.model, "metadata": {MODEL_FROM: conversation.model_from}}
    place = CopilotUnnamedAnswer(context.position, context.agent, output)
    earlier = context.state.unnamed.get(message_id)
    if earlier is not None:
        place.position, place.output = earlier.position, earlier.output + output
    keep_newest(context.state.unnamed, message_id, place, MOST_UNNAMED)
    return {"model": None}


def _use(context: CopilotContext, model: str | None) -> None:
    conversation = context.conversation
    conversation.model, conversation.model_from = model, context.record.type


def _name(context: CopilotContext, message_ids: list[str], model: str) -> None:
    state = context.state
    for message_id in message_ids:
        answer = state.unnamed.pop(message_id)
        # Totals at the end of a run are what its answers, by model, have not counted.
        if answer.output:
            state.outputs[""] = state.outputs.get("", 0) - answer.output
            state.outputs[model] = state.outputs.get(model, 0) + answer.output
        named = Message(
            id=message_id, role="assistant", model=model, metadata={NAME: {MODEL_FROM: context.record.type}}
        )
        context.extend_message(named, answer.position, answer.agent)
