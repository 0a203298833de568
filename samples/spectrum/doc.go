// Spectrum: a signal that Go makes and cleans, whose loudest frequencies NumPy finds; and the reverse, a Python
// program that calls the same functions of Go.
//
//	. .venv/bin/activate                                   # of `make python`
//	go run ./samples/spectrum
//	go build -o bin/spectrum ./samples/spectrum && python samples/spectrum/spectrum.py bin/spectrum
//
// The arrays are written once, into shared memory, and the next language reads them in place. Workers of either
// language may die at any time: their tasks run again.
package main
