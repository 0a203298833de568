package owner

// timerKind says what a timer is for.
type timerKind uint8

const (
	timerDeadline timerKind = iota + 1 // of a task
	timerBackoff                       // a task runs again
	timerGrace                         // a task was told to end and may be abandoned
	timerIdle                          // of a lease
	timerSettle                        // of a worker that is gone
	timerOrder                         // a caller's next call is missing
	timerPack                          // packs that were not answered
	timerResync                        // clients that do not say what they hold
	timerSweep                         // the next slice of a sweep
	timerInquiry                       // who brought a process down is still asked
	timerStop                          // an actor's close hook
)

// timer is an entry of the heap. The shell knows one time only: the earliest.
type timer struct {
	at      int64 // Unix ns
	i       int   // in the heap
	kind    timerKind
	task    *taskRec
	lease   *leaseRec
	client  *clientRec
	caller  *callerRec
	inquiry *culpritInquiry
	actor   *actorRec
}

// timerHeap is a binary heap, earliest first.
type timerHeap []*timer

func (h *timerHeap) add(at int64, t timer) *timer {
	t.at, t.i = at, len(*h)
	*h = append(*h, &t)
	h.up(t.i)
	return &t
}

func (h *timerHeap) remove(t *timer) {
	i, n := t.i, len(*h)-1
	if i < 0 {
		return
	}
	h.swap(i, n)
	(*h)[n] = nil
	*h = (*h)[:n]
	if i < n {
		h.down(i)
		h.up(i)
	}
	t.i = -1
}

func (h *timerHeap) swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].i, s[j].i = i, j
}

func (h *timerHeap) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if (*h)[p].at <= (*h)[i].at {
			return
		}
		h.swap(i, p)
		i = p
	}
}

func (h *timerHeap) down(i int) {
	for {
		j := 2*i + 1
		if j >= len(*h) {
			return
		}
		if j+1 < len(*h) && (*h)[j+1].at < (*h)[j].at {
			j++
		}
		if (*h)[i].at <= (*h)[j].at {
			return
		}
		h.swap(i, j)
		i = j
	}
}
