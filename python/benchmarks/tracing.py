"""What tracing at 1 % costs a Python driver: small tasks without tracing and with it, in alternated runs on one machine.

    MOBULA_BINARY=bin/mobula python benchmarks/tracing.py [PAIRS] [TASKS]

Each run has a node of its own, which exports to a collector that takes everything. It prints the median of the pairs' ratios less one, in
percent, and its 95 % interval, by resampling the pairs.
"""

from __future__ import annotations

import http.server
import os
import random
import statistics
import subprocess
import sys
import threading

RUN = """
import sys, time, mobula

@mobula.remote
def f(x):
    return x

n = int(sys.argv[1])
with mobula.init(num_cpus=1, object_store_memory=64 << 20):
    mobula.get([f.remote(i) for i in range(n // 4)])
    began = time.perf_counter()
    for _ in range(4):
        mobula.get([f.remote(i) for i in range(n // 4)])
    print(time.perf_counter() - began)
"""


class Sink(http.server.BaseHTTPRequestHandler):
    """Takes everything."""

    got = 0

    def do_POST(self) -> None:
        Sink.got += len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def run(tasks: int, endpoint: str) -> float:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    env.update({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
               if endpoint else {"OTEL_TRACES_SAMPLER": "always_off"})
    return float(subprocess.run([sys.executable, "-c", RUN, str(tasks)], env=env, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    pairs, tasks = (int(x) for x in (sys.argv[1:] + ["15", "20000"][len(sys.argv) - 1:]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    ratios = []
    for i in range(pairs):
        order = ["", endpoint] if i % 2 == 0 else [endpoint, ""]
        took = {e: run(tasks, e) for e in order}
        ratios.append(took[endpoint] / took[""] - 1)
        print(f"pair {i + 1}: without {took['']:.3f} s, with {took[endpoint]:.3f} s, {100 * ratios[-1]:+.1f} %", flush=True)
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=pairs)) for _ in range(10_000))
    print(f"overhead {100 * statistics.median(ratios):+.1f} %, 95 % interval {100 * medians[250]:+.1f} to {100 * medians[-251]:+.1f} %; "
          f"the collector got {Sink.got} bytes")


if __name__ == "__main__":
    main()
