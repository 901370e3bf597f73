"""Metrics for Prometheus, on a listener of their own: the public can't reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric

from app.domain.errors import OperatorError, UserError

METRICS_VARIABLE = "CELOSIA_METRICS"

_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Counts(Protocol):
    """What is counted anew at every look: jobs by state, and whether a release is live."""

    def __call__(self) -> tuple[Mapping[str, int], bool]: ...


class Metrics:
    """The metrics of one process.

    Parameters
    ----------
    counts : callable, optional
        Asked whenever Prometheus asks; may raise `OperatorError`, which shows as ``celosia_database_up`` 0.
    """

    def __init__(self, counts: Counts | None = None) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "celosia_requests", "Requests answered.", ("part", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "celosia_request_seconds",
            "Seconds until a request was answered whole.",
            ("part",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        if counts is not None:
            self.registry.register(_State(counts))

    def serve(self, address: str, number: int = 0) -> tuple[int, Callable[[], None]]:
        """Answer Prometheus at ``host:port``, so many ports further; returns the port, and what ends it.

        Raises
        ------
        UserError
            The address can't be read.
        OperatorError
            It can't be listened at.
        """
        host, _colon, port = address.rpartition(":")
        if not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise UserError(f"{METRICS_VARIABLE} is an address as 127.0.0.1:9464, not {address[:60]}.")
        # Port 0 is any free one.
        chosen = int(port) + number if int(port) else 0
        try:
            server, thread = start_http_server(chosen, host.strip("[]") or "127.0.0.1", self.registry)
        except (OSError, OverflowError) as error:
            raise OperatorError(f"Metrics can't be served at {host}:{chosen}: {error}.") from None

        def end() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return int(server.server_port), end


@dataclass(frozen=True, eq=False)
class _State:
    """Asks the database at every look."""

    counts: Counts

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("celosia_database_up", "Whether the database answers.")
        try:
            jobs, live = self.counts()
        except OperatorError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        family = GaugeMetricFamily("celosia_jobs", "Jobs by state.", labels=["state"])
        for state, count in jobs.items():
            family.add_metric([state], count)
        yield family
        yield GaugeMetricFamily("celosia_release_live", "Whether a release is live.", value=float(live))
