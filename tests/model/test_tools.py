"""The states of a tool call: R-S10's seven and `aborted` (R-K9), one table, one judge."""

from __future__ import annotations

import itertools

import pytest

from turnlog.model import ResultStatus, ToolState, advance, can_advance
from turnlog.model.parts import STATE_OF_STATUS, TRANSITIONS, state_after

S = ToolState

OPEN = (S.INPUT_STREAMING, S.INPUT_AVAILABLE, S.APPROVAL_REQUESTED, S.APPROVAL_RESPONDED)
OUTCOMES = (S.OUTPUT_AVAILABLE, S.OUTPUT_ERROR, S.OUTPUT_DENIED, S.ABORTED)

FORWARD = {(S.INPUT_STREAMING, S.INPUT_AVAILABLE), (S.INPUT_AVAILABLE, S.APPROVAL_REQUESTED)} | {
    (S.APPROVAL_REQUESTED, S.APPROVAL_RESPONDED)
}
LATE = {(first, second) for first in (S.OUTPUT_AVAILABLE, S.OUTPUT_ERROR, S.ABORTED) for second in OUTCOMES}
ALLOWED = FORWARD | LATE | set(itertools.product(OPEN, OUTCOMES)) | {(state, state) for state in S}


def test_the_states_are_those_of_ai_sdk_and_aborted() -> None:
    """R-S10: seven states by these names; R-K9: one more, that AI SDK does not have."""
    assert [state.value for state in S] == [
        "input-streaming",
        "input-available",
        "approval-requested",
        "approval-responded",
        "output-available",
        "output-error",
        "output-denied",
        "aborted",
    ]


@pytest.mark.parametrize(("current", "following"), list(itertools.product(S, S)))
def test_every_pair_of_states_is_judged_alike_by_table_and_advance(current: ToolState, following: ToolState) -> None:
    assert can_advance(current, following) == ((current, following) in ALLOWED)
    if can_advance(current, following):
        assert advance(current, following) is following
    else:
        with pytest.raises(ValueError, match=f"from {current} to {following}"):
            advance(current, following)


def test_the_table_names_every_state() -> None:
    assert set(TRANSITIONS) == set(S)


def test_aborted_is_not_error_is_not_denied() -> None:
    """R-K9: three ways to end without success, each with a state of its own."""
    ends: dict[ResultStatus, ToolState] = {
        "success": S.OUTPUT_AVAILABLE,
        "error": S.OUTPUT_ERROR,
        "aborted": S.ABORTED,
        "denied": S.OUTPUT_DENIED,
    }
    assert ends == STATE_OF_STATUS
    assert len(set(ends.values())) == 4


@pytest.mark.parametrize("state", S)
def test_every_state_but_a_refusal_can_end_in_every_outcome(state: ToolState) -> None:
    """A killed agent may come back with any late result; a refused call never runs."""
    reachable = {outcome for outcome in OUTCOMES if can_advance(state, outcome)}
    assert reachable == ({S.OUTPUT_DENIED} if state is S.OUTPUT_DENIED else set(OUTCOMES))


@pytest.mark.parametrize("start", OPEN)
@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        (["success"], S.OUTPUT_AVAILABLE),
        (["success", "error"], S.OUTPUT_ERROR),
        (["aborted", "success"], S.OUTPUT_AVAILABLE),
        (["aborted", "denied"], S.OUTPUT_DENIED),
        (["denied", "success"], S.OUTPUT_DENIED),
        (["success", "aborted"], S.ABORTED),
    ],
)
def test_the_last_allowed_result_says_where_a_call_is(
    start: ToolState, statuses: list[ResultStatus], state: ToolState
) -> None:
    assert state_after(start, statuses) is state


def test_a_call_without_results_stays_where_it_is() -> None:
    assert [state_after(state, []) for state in S] == list(S)
