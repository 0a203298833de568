"""The program's own OpenTelemetry spans in a worker: sends them to the node, and flushes them before the process ends."""

from __future__ import annotations

import logging
import os
import threading
from typing import Mapping

from .. import _trace
from .._client import Client

log = logging.getLogger("mobula")

FLUSH = 2.0  # seconds to send the last spans


def wanted(env: Mapping[str, str]) -> bool:
    """Whether the environment asks for spans to be exported."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter == "otlp" or (not exporter and any(
        env.get(k, "").strip() for k in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")))


def provide() -> None:
    """Sets a tracer provider that sends spans to the node, if the environment asks for an exporter and the program has set no provider."""
    if not wanted(os.environ):
        return
    from opentelemetry import trace

    from .._otel import Provider

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(Provider())


def flush(c: Client) -> None:
    """Before the process ends: sends its spans to the node, and flushes the program's own tracer provider if it has one."""
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

    t = threading.Thread(target=run, name="mobula-last-spans", daemon=True)  # daemon: an exporter that hangs does not keep the process alive
    t.start()
    t.join(FLUSH)
