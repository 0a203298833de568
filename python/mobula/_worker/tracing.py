"""The program's own spans in a worker: where they go, and that none is left when the process ends."""

from __future__ import annotations

import logging
import os
import threading
from typing import Mapping

from .. import _trace
from .._client import Client

log = logging.getLogger("mobula")

FLUSH = 2.0  # seconds that the last spans have


def wanted(env: Mapping[str, str]) -> bool:
    """Whether the environment asks for spans to be exported."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter == "otlp" or (not exporter and any(
        env.get(k, "").strip() for k in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")))


def provide() -> None:
    """Has spans of OpenTelemetry's API go to the node, where the environment asks for an exporter and the program has no tracer provider."""
    if not wanted(os.environ):
        return
    from opentelemetry import trace

    from .._otel import Provider

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(Provider())


def flush(c: Client) -> None:
    """The process is about to end: what spans it has go to the node, and those of the program's own provider wherever they go."""
    c.spans.flush(FLUSH)
    otel = _trace.OpenTelemetry.loaded()
    force = getattr(otel.get_tracer_provider(), "force_flush", None) if otel is not None else None
    if force is None:
        return

    def run() -> None:
        try:
            force(int(FLUSH * 1000))
        except Exception:
            log.exception("the last spans of this worker could not be exported")

    t = threading.Thread(target=run, name="mobula-last-spans", daemon=True)  # an exporter that hangs does not hold the process up
    t.start()
    t.join(FLUSH)
