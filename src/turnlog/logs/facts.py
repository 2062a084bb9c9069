"""What a session is as a whole, where no store has kept count: its title, models, tokens and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from turnlog.agents.changes import Link, SessionChange
from turnlog.model import Membership, Message, Project, Session, SessionCounts
from turnlog.model.usage import BUCKETS
from turnlog.pricing import price_nanos
from turnlog.store.reconcile.merge import relationship_of
from turnlog.store.reconcile.titles import choose_title
from turnlog.store.rows import (
    MESSAGE_COUNTS,
    USAGE_COUNTS,
    dollars,
    message_facts,
    nanos,
    priced,
    usage_counts,
    usage_total,
)
from turnlog.store.writing.names import project_name


def session_of(
    facts: SessionChange, parents: Iterable[Link], placed: Sequence[tuple[Message, Membership]], counts: SessionCounts
) -> Session:
    """The session of which its files say these facts.

    Args:
        facts: What the records say of the session itself.
        parents: The links of which it is the child.
        placed: All of its messages, each with its place: those that another session pays for cost nothing here.
        counts: As `session_counts` has them.
    """
    agent, _, external_id = facts.session_id.partition(":")
    title = choose_title(facts.titles) or (None, None)
    sums = _usage_sums(message for message, place in placed if place.pays)
    calls, unknown, unpriced = sums["calls"], sums["unknown_calls"], sums["unpriced_calls"]
    models = Counter(message.model for message, _ in placed if message.role == "assistant" and message.model)
    reported = nanos(facts.reported_cost)
    return Session(
        id=facts.session_id,
        agent=agent,
        external_id=external_id,
        title=title[0],
        title_source=title[1],
        project=None
        if facts.project_path is None
        else Project(path=facts.project_path, name=project_name(facts.project_path)),
        cwd=facts.cwd,
        git_branch=facts.git_branch,
        git_commit=facts.git_commit,
        agent_version=facts.agent_version,
        models=tuple(sorted(models, key=lambda name: (-models[name], name))),
        created_at=facts.first_at,
        updated_at=facts.last_at,
        relationships=tuple(relationship_of(link) for link in parents),
        counts=counts,
        usage=usage_total([sums[name] for name in BUCKETS], calls, unknown, sums["lower_bound"]),
        cost=priced(sums["cost"], calls, unknown, unpriced),
        unpriced_calls=unpriced + unknown,
        reported_cost=None if reported is None else dollars(reported, reported=True),
        metadata=facts.metadata,
    )


def session_counts(
    messages: Iterable[Message], memberships: Iterable[Membership], *, events: int, diagnostics: int
) -> SessionCounts:
    """How much there is in a session."""
    return SessionCounts(
        turns=max((membership.turn or 0 for membership in memberships), default=0),
        events=events,
        diagnostics=diagnostics,
        **_message_counts(messages),
    )


def _message_counts(messages: Iterable[Message]) -> dict[str, Any]:
    sums = Counter[str]()
    for message in messages:
        sums.update(dict(zip(MESSAGE_COUNTS, message_facts(message, 0).counts, strict=True)))
    return {name: int(sums[name]) for name in MESSAGE_COUNTS}


def _usage_sums(messages: Iterable[Message]) -> Counter[str]:
    sums = Counter[str]()
    for message in messages:
        provider = message.provider.name if message.provider else None
        cost: Any = None
        if message.role == "assistant":
            cost = price_nanos(message.usage, message.model, provider, message.created_at)
        counts = usage_counts(message, cost)
        if counts is not None:
            sums.update(dict(zip(USAGE_COUNTS, counts, strict=True)))
    return sums
