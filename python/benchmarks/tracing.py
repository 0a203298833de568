"""Measures what tracing at 1 % costs a Python driver: small tasks with and without tracing, side by side on one machine.

    MOBULA_BINARY=bin/mobula python benchmarks/tracing.py [PAIRS] [TASKS]

A pair is two drivers, each with a node of its own: one without tracing, one that exports to a collector. Their blocks of tasks alternate, so
that a busy machine slows both. A pair's ratio is that of the sums. The program prints the median of the ratios minus one, in percent, with its
95 % interval by resampling the pairs. For every fourth pair it also measures two drivers without tracing: that is the machine's noise.
"""

from __future__ import annotations

import http.server
import os
import random
import statistics
import subprocess
import sys
import threading

BLOCKS = 20

RUN = """
import sys, time, mobula

@mobula.remote
def f(x):
    return x

with mobula.init(num_cpus=1, object_store_memory=64 << 20):
    for line in sys.stdin:
        n = int(line)
        began = time.perf_counter()
        mobula.get([f.remote(i) for i in range(n)])
        print(time.perf_counter() - began, flush=True)
"""


class Sink(http.server.BaseHTTPRequestHandler):
    """A collector that accepts and drops everything."""

    got = 0

    def do_POST(self) -> None:
        Sink.got += len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Driver:
    """A driver with a node of its own. It runs a block of tasks on request."""

    def __init__(self, endpoint: str) -> None:
        env = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        env.update({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
                   if endpoint else {"OTEL_TRACES_SAMPLER": "always_off"})
        self.process = subprocess.Popen([sys.executable, "-c", RUN], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def block(self, tasks: int) -> float:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{tasks}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()


def pair(first: str, second: str, tasks: int) -> float:
    """The time of a driver with the second endpoint, divided by that of one with the first."""
    a, b = Driver(first), Driver(second)
    took = {a: 0.0, b: 0.0}
    for d in (a, b, a, b):
        d.block(tasks // BLOCKS)
    for i in range(BLOCKS):
        for d in ((a, b), (b, a))[i % 2]:
            took[d] += d.block(tasks // BLOCKS)
    a.end()
    b.end()
    return took[b] / took[a]


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def summary(name: str, ratios: list[float]) -> str:
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return f"{name} {percent(statistics.median(ratios))}, 95 % interval {percent(medians[250])} to {percent(medians[-251])}"


def main() -> None:
    pairs, tasks = (int(x) for x in (sys.argv[1:] + ["15", "40000"][len(sys.argv) - 1:]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    traced, plain = [], []
    for i in range(pairs):
        traced.append(pair("", endpoint, tasks) if i % 2 == 0 else 1 / pair(endpoint, "", tasks))
        line = f"pair {i + 1}: tracing {percent(traced[-1])}"
        if i % 4 == 3:
            plain.append(pair("", "", tasks))
            line += f", nothing {percent(plain[-1])}"
        print(line, flush=True)
    print(summary("tracing", traced))
    if plain:
        print(summary("nothing", plain))
    print(f"the collector got {Sink.got} bytes")


if __name__ == "__main__":
    main()
