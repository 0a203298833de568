"""Finds the loudest frequencies of a signal. The Go program in this folder calls its function, and as a program it calls that program's functions.

    python spectrum.py PROGRAM [SAMPLES]      # PROGRAM: go build -o PROGRAM ./samples/spectrum
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

import mobula


def peaks(signal: npt.NDArray[np.float64], rate: float, n: int) -> list[float]:
    """The n loudest frequencies in Hz, in ascending order."""
    loudness = np.abs(np.fft.rfft(signal))
    loudest = np.argsort(loudness)[-n:]
    return sorted((loudest * rate / len(signal)).tolist())


def main(program: str, samples: int) -> None:
    tones = [50.0, 120.0, 440.0]
    signal, despike = mobula.go_function("spectrum/signal"), mobula.go_function("spectrum/despike")
    with mobula.init(go_program=program):
        clean = despike.remote(signal.remote(samples, tones))  # two tasks of Go, nothing waits
        found = mobula.get(mobula.remote(peaks).remote(clean, 8000.0, len(tones)))  # one of Python
        print(f"{samples} samples of {tones} Hz: the loudest are {[round(f, 1) for f in found]} Hz")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
