package graph

// measure is what was measured of the tasks of a group or a prefix.
type measure struct {
	n, bytes, ns int64
}

func (m *measure) add(bytes, ns int64) {
	m.n++
	m.bytes += bytes
	m.ns += ns
}

// measures has the sizes of results and the durations of tasks seen so far.
type measures struct {
	*step
	tasks *tasks
	known []measure // by group
	kinds []measure // by prefix
	all   measure
}

func newMeasures(s *step, ts *tasks) *measures {
	return &measures{step: s, tasks: ts, known: make([]measure, len(s.g.groups)), kinds: make([]measure, len(s.g.kinds))}
}

func (ms *measures) learn(t int32, bytes, ns int64) {
	ms.all.add(bytes, ns)
	g := ms.g.group[t]
	ms.known[g].add(bytes, ns)
	ms.kinds[ms.g.groups[g].kind].add(bytes, ns)
}

// seen gives the measure of tasks like t, of its group or else of its prefix, or nil.
func (ms *measures) seen(t int32) *measure {
	g := ms.g.group[t]
	if m := &ms.known[g]; m.n > 0 {
		return m
	}
	if m := &ms.kinds[ms.g.groups[g].kind]; m.n > 0 {
		return m
	}
	return nil
}

// size is the expected size of a result in bytes, or 1 while no size is known at all.
func (ms *measures) size(t int32) float64 {
	if ms.tasks.list[t].state == Memory {
		return float64(ms.tasks.list[t].bytes)
	}
	if m := ms.seen(t); m != nil {
		return float64(m.bytes) / float64(m.n)
	}
	return ms.mean()
}

// mean is the mean size of the results seen.
func (ms *measures) mean() float64 {
	if ms.all.n == 0 || ms.all.bytes == 0 {
		return 1
	}
	return float64(ms.all.bytes) / float64(ms.all.n)
}

// meanDuration is the mean duration of the tasks seen, in ns.
func (ms *measures) meanDuration() int64 {
	if ms.all.n == 0 {
		return defaultDuration
	}
	return ms.all.ns / ms.all.n
}

// duration is how long a task is expected to run.
func (ms *measures) duration(t int32) int64 {
	if m := ms.seen(t); m != nil {
		return m.ns / m.n
	}
	return defaultDuration
}
