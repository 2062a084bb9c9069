"""Figures of one process for Prometheus: how many requests, how long, how many streams; and what budgets have left.

Nothing of what requests hold, and no name of a project or a person.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from turnlog.errors import StoreError
from turnlog.hub.budgets import TeamBudget

TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one process."""

    def __init__(self, budgets: Callable[[], Sequence[tuple[int, TeamBudget]]]) -> None:
        """Begin at zero. `budgets` gives those of every team."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "turnlog_hub_requests", "Requests answered.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "turnlog_hub_request_seconds",
            "Time until the head of an answer.",
            ["route"],
            buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
            registry=self._registry,
        )
        self.under_way = Gauge("turnlog_hub_requests_under_way", "Requests being answered.", registry=self._registry)
        self._registry.register(_BudgetCollector(budgets))

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All figures. It may ask the database."""
        return generate_latest(self._registry)


class _BudgetCollector(Collector):
    """Budgets when they are asked for. What admins of the team may not know has no sample."""

    def __init__(self, budgets: Callable[[], Sequence[tuple[int, TeamBudget]]]) -> None:
        self._budgets = budgets

    def describe(self) -> list[Metric]:
        """What there is; without it, it would be collected when it is registered."""
        return list(_families())

    def collect(self) -> Generator[Metric]:
        """The samples of all budgets; none while there is no database."""
        limits, spent, unpriced = _families()
        try:
            found = self._budgets()
        except StoreError:
            return
        for team, each in found:
            labels = (str(team), each.id, each.scope)
            limits.add_metric(labels, each.limit)
            if each.spent is not None:
                spent.add_metric(labels, each.spent)
            if each.unpriced_calls is not None:
                unpriced.add_metric(labels, each.unpriced_calls)
        yield from (limits, spent, unpriced)


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    labels = ("team", "budget", "scope")
    return (
        GaugeMetricFamily("turnlog_hub_budget_limit_dollars", "Budget of a month.", labels=labels),
        GaugeMetricFamily(
            "turnlog_hub_budget_spent_dollars", "What the running month (UTC) cost at list prices.", labels=labels
        ),
        GaugeMetricFamily(
            "turnlog_hub_budget_unpriced_calls", "Calls of unknown price in the running month.", labels=labels
        ),
    )
