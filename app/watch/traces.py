"""Traces for OpenTelemetry, if its extra is installed and an endpoint is named; nothing otherwise.

Spans carry the part of the site, the status, a job's number and names of steps: no address (it may hold
what a reader looks for) and no value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from app.domain.errors import OperatorError

#: OpenTelemetry's own variable; the others of its specification hold too.
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Tracer(Protocol):
    """Opens spans."""

    def start_as_current_span(self, name: str, *, attributes: Mapping[str, Any]) -> Any: ...


_tracer: Tracer | None = None


def install_traces(service: str) -> None:
    """Send traces of this process to the endpoint of the environment, if there is one.

    Raises
    ------
    OperatorError
        An endpoint is named but the extra isn't installed.
    """
    if not os.environ.get(ENDPOINT_VARIABLE):
        return
    try:
        trace = import_module("opentelemetry.sdk.trace")
        export = import_module("opentelemetry.sdk.trace.export")
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        resources = import_module("opentelemetry.sdk.resources")
    except ModuleNotFoundError:
        raise OperatorError(
            f"{ENDPOINT_VARIABLE} is set, but OpenTelemetry isn't installed: celosia[telemetry]."
        ) from None
    provider = trace.TracerProvider(resource=resources.Resource.create({"service.name": service}))
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    use_tracer(provider.get_tracer("celosia"))


def use_tracer(tracer: Tracer | None) -> None:
    """Open spans with this tracer from now on."""
    global _tracer
    _tracer = tracer


@contextmanager
def span(name: str, **attributes: str | int | float | bool) -> Iterator[Any]:
    """A span around a piece of work; None where nobody traces."""
    if _tracer is None:
        yield None
        return
    named = {f"celosia.{key}": value for key, value in attributes.items()}
    with _tracer.start_as_current_span(name, attributes=named) as found:
        yield found
