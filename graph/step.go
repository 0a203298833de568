package graph

import "math"

// step is what all parts share: the graph, the configuration, and the time and the effects of the present step.
type step struct {
	g        *Graph
	cfg      Config
	now      int64
	started  bool
	counters Counters
	out      []Effect
}

// Counters count since the core was made.
type Counters struct {
	Done, Retried, Lost, Stolen, Fetches uint64
	BytesMoved                           int64
}

func (s *step) emit(e Effect) { s.out = append(s.out, e) }

// unlimited tells whether withholding is turned off.
func (s *step) unlimited() bool { return math.IsInf(s.cfg.Saturation, 1) }
