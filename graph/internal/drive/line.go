package drive

import (
	"maps"
	"math"
	"slices"

	"mobula/graph/internal/amount"
	"mobula/internal/errs"
	"mobula/internal/heap"
)

// Limits bound which tasks run at once.
type Limits struct {
	Tasks int                                 // 0: no bound
	Have  map[string]float64                  // amounts of resources; a resource that is not named is not bounded
	Need  func(task int32) map[string]float64 // what a task takes while it runs; nil: nothing
}

// line has the ready tasks, and finds those that may run: tasks with equal needs are in one class.
type line struct {
	most, flying int
	names        []string // of the resources
	free         []int64  // thousandths
	classes      []class
	of           []int32 // class class of each task; nil: there is only one
}

type class struct {
	need  []int64   // beside line.names
	ready []waiting // a heap by rank
}

type waiting struct{ rank, task int32 }

func sooner(a, b *waiting) bool { return a.rank < b.rank }

func newLine(tasks int, lim Limits) (*line, error) {
	l := &line{most: lim.Tasks}
	if lim.Tasks == 0 {
		l.most = math.MaxInt
	}
	if len(lim.Have) == 0 || lim.Need == nil {
		l.classes = make([]class, 1)
		return l, nil
	}
	l.names = slices.Sorted(maps.Keys(lim.Have))
	for _, name := range l.names {
		have := lim.Have[name]
		if wrong := amount.Wrong(have, name); wrong != "" {
			return nil, errs.New(errs.CodeInvalid, "there are %s; one that is not named has no bound", wrong)
		}
		l.free = append(l.free, thousandths(have))
	}
	l.of = make([]int32, tasks)
	for t := range l.of {
		need := lim.Need(int32(t))
		i, err := l.class(need)
		if err != nil {
			return nil, &Failure{Task: int32(t), Err: err}
		}
		l.of[t] = i
	}
	return l, nil
}

// class finds the class of a need.
func (l *line) class(need map[string]float64) (int32, error) {
	amounts := make([]int64, len(l.names))
	for i, name := range l.names {
		if wrong := amount.Wrong(need[name], name); wrong != "" {
			return 0, errs.New(errs.CodeInvalid, "%s", wrong)
		}
		if amounts[i] = thousandths(need[name]); amounts[i] > l.free[i] {
			return 0, errs.New(errs.CodeUnschedulable, "%g of resource %q: there are %g", need[name], name, float64(l.free[i])/1000)
		}
	}
	for i := range l.classes {
		if slices.Equal(l.classes[i].need, amounts) {
			return int32(i), nil
		}
	}
	l.classes = append(l.classes, class{need: amounts})
	return int32(len(l.classes) - 1), nil
}

func thousandths(x float64) int64 { return int64(math.Ceil(x * 1000)) }

func (l *line) classOf(t int32) *class {
	if l.of == nil {
		return &l.classes[0]
	}
	return &l.classes[l.of[t]]
}

func (l *line) push(t, rank int32) {
	heap.Push(&l.classOf(t).ready, waiting{rank, t}, sooner)
}

// next takes the first task in order among those that may start now.
func (l *line) next() (int32, bool) {
	if l.flying >= l.most {
		return 0, false
	}
	var best *class
	for i := range l.classes {
		c := &l.classes[i]
		if len(c.ready) > 0 && (best == nil || sooner(&c.ready[0], &best.ready[0])) && l.fits(c) {
			best = c
		}
	}
	if best == nil {
		return 0, false
	}
	l.flying++
	for i, n := range best.need {
		l.free[i] -= n
	}
	return heap.Pop(&best.ready, sooner).task, true
}

func (l *line) fits(c *class) bool {
	for i, n := range c.need {
		if n > l.free[i] {
			return false
		}
	}
	return true
}

// ended gives back what a task took.
func (l *line) ended(t int32) {
	l.flying--
	for i, n := range l.classOf(t).need {
		l.free[i] += n
	}
}
