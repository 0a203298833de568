package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"mobula"
)

const rate = 8000 // samples a second

// Signal makes a signal of some tones, in Hz, with noise and a spike here and there. Despike removes the spikes.
var (
	Signal  = mobula.Register2("spectrum/signal", signal)
	Despike = mobula.Register1("spectrum/despike", despike)
)

// Peaks gives a signal's loudest frequencies, in Hz: a function of spectrum.py.
var Peaks = mobula.PythonFunc3[[]float64, float64, int, []float64]("spectrum", "peaks")

func signal(_ context.Context, n int, tones []float64) ([]float64, error) {
	if n < 1 {
		return nil, fmt.Errorf("a signal of %d samples, want at least 1", n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]float64, n)
	for i := range out {
		for _, f := range tones {
			out[i] += math.Sin(2 * math.Pi * f * float64(i) / rate)
		}
		out[i] += 0.1 * r.NormFloat64()
		if r.IntN(1000) == 0 {
			out[i] += 1000 * r.NormFloat64()
		}
	}
	return out, nil
}

// despike is a median of three: a loop that would be slow in Python.
func despike(_ context.Context, xs []float64) ([]float64, error) {
	out := make([]float64, len(xs))
	for i := range xs {
		a, b, c := xs[max(i-1, 0)], xs[i], xs[min(i+1, len(xs)-1)]
		out[i] = max(min(a, b), min(max(a, b), c))
	}
	return out, nil
}

// run gives the loudest frequencies of a signal of n samples.
func run(ctx context.Context, n int, tones []float64) ([]float64, error) {
	clean := Despike.Go(ctx, Signal.Go(ctx, mobula.V(n), mobula.V(tones)))
	return Peaks.Go(ctx, clean, mobula.V(float64(rate)), mobula.V(len(tones))).Get(ctx)
}

func main() {
	if mobula.WorkerMain() {
		return
	}
	n := flag.Int("n", 1_000_000, "samples")
	dir := flag.String("dir", "samples/spectrum", "where spectrum.py is")
	flag.Parse()
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error {
		tones := []float64{50, 120, 440}
		peaks, err := run(ctx, *n, tones)
		var py *mobula.PythonError
		if errors.As(err, &py) {
			return fmt.Errorf("%w\n%s", err, py.Traceback)
		}
		if err != nil {
			return err
		}
		fmt.Printf("%d samples of %v Hz: the loudest are %.1f Hz\n", *n, tones, peaks)
		return nil
	}, mobula.WithPython(mobula.PythonPath(*dir)))
}
