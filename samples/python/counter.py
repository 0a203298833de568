"""Kills the process of a named actor again and again while it counts. The actor restarts each time and reads its saved state, so that no call
is lost or counted twice.

    python counter.py --calls 2000 --kill-every 250

The actor writes each answer to a journal before it returns it. When a call is retried after a crash, the actor knows it by its number and
returns the recorded answer. Calls wait while the actor restarts. They would fail with ActorDiedError once no restarts were left.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time

import memory
import mobula


class Counter:
    """Counts, and writes each answer to a journal before it returns it."""

    def __init__(self, path: str) -> None:
        """Reads the state from the journal, also after each crash. A line that a crash cut short was not returned, and is dropped."""
        self._journal = open(path, "a+")
        self._journal.seek(0)
        text = self._journal.read()
        whole = text[:text.rfind("\n") + 1]
        self._journal.truncate(len(whole))
        self._answers = [int(line) for line in whole.splitlines()]

    def add(self, call: int, by: int) -> int:
        """Counts a call. Calls are numbered from 1."""
        done = len(self._answers)
        if call <= done:
            return self._answers[call - 1]
        if call > done + 1:
            raise ValueError(f"call {call} comes before call {done + 1}")
        count = (self._answers[-1] if self._answers else 0) + by
        self._journal.write(f"{count}\n")
        self._journal.flush()
        self._answers.append(count)
        return count

    def pid(self) -> int:
        return os.getpid()


CounterActor = mobula.remote(max_restarts=-1, max_task_retries=-1)(Counter)


def run(calls: int, kill_every: int, path: str) -> int:
    """Makes the calls and kills the actor's process meanwhile. Returns how often."""
    mine = CounterActor.options(name="counter").remote(path)  # the handle keeps the actor alive
    counter = mobula.get_actor("counter")  # any program of the namespace can do this
    victim = kills = 0
    answers = []
    for call in range(1, calls + 1):
        answers.append(counter.add.remote(call, 1))
        if kill_every and victim and call % kill_every == kill_every // 2:  # while calls are under way
            os.kill(victim, signal.SIGKILL)
            kills += 1
            victim = 0
        if kill_every and call % kill_every == 0:
            victim = mobula.get(counter.pid.remote())
    if mobula.get(answers) != list(range(1, calls + 1)):
        raise SystemExit("a call was lost, or counted twice")
    mobula.kill(mine)
    return kills


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--calls", type=memory.at_least(1), default=2000, help="to make (%(default)s)")
    flags.add_argument("--kill-every", type=memory.at_least(0), default=250, help="calls, kill the actor's process; 0: never (%(default)s)")
    a = flags.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, mobula.init(num_cpus=1):
        kills = run(a.calls, a.kill_every, os.path.join(folder, "journal"))
    print(f"{a.calls} calls, {kills} processes killed, every answer right, in {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
