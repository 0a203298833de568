package events

import (
	"encoding/binary"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Event is one change of a task's state.
type Event struct {
	Task    ids.TaskID
	Opts    *wire.TaskOptions // shared by all calls with the same options; of long ones two texts, in brief (see briefOptions)
	At      int64             // Unix ns
	Started int64             // when the ended attempt began in the worker; 0: unknown
	Ended   int64
	Worker  ids.ClientID
	Lease   ids.LeaseID
	Reason  *errs.Error // why it failed or runs again, in brief (see brief); may be nil
	Attempt uint32
	State   task.State
	Kind    wire.TaskKind
}

// Config of a Recorder. The zero value of a field takes its default.
type Config struct {
	Ring int // events in memory; default 100,000, as Ray's; negative: none
	Rate int // events a second that are recorded completely; default 20,000
}

const (
	blockSize = 1 << 10
	window    = int64(100e6) // ns over which the rate is measured
)

type block struct{ ev [blockSize]Event }

// Recorder is the record in memory.
type Recorder struct {
	more chan struct{} // a token when something was recorded since the last was taken

	mu       sync.Mutex
	keep     int        // guarded by mu: blocks; 0: nothing is recorded
	rate     uint64     // guarded by mu: events a window
	blocks   []*block   // guarded by mu: oldest first; the last is being filled
	fill     int        // guarded by mu: events in the last block
	recorded uint64     // guarded by mu
	dropped  uint64     // guarded by mu
	mask     uint64     // guarded by mu: a task is dropped unless its hash has zeros here
	until    int64      // guarded by mu: end of the window
	seen     uint64     // guarded by mu: events recorded in it by their hash
	counts   [16]uint64 // guarded by mu: of all changes, by state
}

// New makes a recorder.
func New(cfg Config) *Recorder {
	r := &Recorder{more: make(chan struct{}, 1)}
	r.Configure(cfg)
	return r
}

// Configure changes the bounds. Recorded events stay, up to the new bound.
func (r *Recorder) Configure(cfg Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cfg.Ring == 0 {
		cfg.Ring = 100_000
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 20_000
	}
	r.rate = max(1, uint64(cfg.Rate)*uint64(window)/1e9)
	r.keep = 0
	if cfg.Ring > 0 {
		r.keep = (cfg.Ring+blockSize-1)/blockSize + 1 // the last block is not full
	}
	if over := len(r.blocks) - r.keep; over > 0 {
		r.blocks = append([]*block(nil), r.blocks[over:]...)
	}
}

// Recording tells whether events are kept at all.
func (r *Recorder) Recording() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keep > 0
}

// Record takes an owner's changes, in order.
func (r *Recorder) Record(changes []owner.Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.recorded
	for i := range changes {
		ch := &changes[i]
		r.counts[ch.State&15] += max(1, ch.Count)
		if r.keep == 0 {
			continue
		}
		if ch.Count > 0 {
			r.dropped += ch.Count
			continue
		}
		if ch.At >= r.until {
			r.adapt(ch.At)
		}
		if binary.LittleEndian.Uint64(ch.Spec.ID[8:])&r.mask == 0 {
			if r.seen++; r.seen > r.rate { // too many: record half of the tasks from here on
				r.mask, r.seen = r.mask<<1|1, 0
			}
		} else if !ch.Spec.Trace.Sampled() && ch.Reason == nil {
			r.dropped++
			continue
		}
		r.append(ch)
	}
	if r.recorded != before {
		select {
		case r.more <- struct{}{}:
		default:
		}
	}
}

// adapt begins another window. It records more tasks if the last window left room, and one step more for each
// window in which nothing happened.
func (r *Recorder) adapt(now int64) {
	if r.seen < r.rate/4 {
		r.mask >>= 1
	}
	if idle := (now - r.until) / window; r.mask != 0 && idle > 0 {
		r.mask >>= uint64(min(idle, 63))
	}
	r.seen, r.until = 0, now+window
}

func (r *Recorder) append(ch *owner.Transition) {
	if len(r.blocks) == 0 || r.fill == blockSize {
		if len(r.blocks) >= r.keep {
			r.blocks[0] = nil
			r.blocks = append(r.blocks[:0], r.blocks[1:]...)
		}
		r.blocks = append(r.blocks, new(block))
		r.fill = 0
	}
	e := &r.blocks[len(r.blocks)-1].ev[r.fill]
	r.fill++
	r.recorded++
	s := ch.Spec
	e.Task, e.Opts, e.Kind = s.ID, briefOptions(s.Opts), s.Kind
	e.At, e.State, e.Attempt = ch.At, ch.State, ch.Attempt
	e.Worker, e.Lease, e.Reason = ch.Worker, ch.Lease, brief(ch.Reason)
	if ch.Times != nil {
		e.Started, e.Ended = ch.Times.Started, ch.Times.Ended
	}
}

// Stats are counters since the recorder was made.
type Stats struct {
	Recorded uint64
	Dropped  uint64 // never recorded
	Kept     int    // in memory now
	States   map[task.State]uint64
}

// Stats gives the counters.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Recorded: r.recorded, Dropped: r.dropped, Kept: r.held(), States: make(map[task.State]uint64)}
	for _, st := range task.States() {
		if n := r.counts[st&15]; n > 0 {
			s.States[st] = n
		}
	}
	return s
}

func (r *Recorder) held() int {
	if len(r.blocks) == 0 {
		return 0
	}
	return (len(r.blocks)-1)*blockSize + r.fill
}

// Since gives the events in memory from the n-th ever recorded on, oldest first, in parts that must not be
// changed. next is the number to go on with; lost is how many of the requested events are no longer there.
func (r *Recorder) Since(n uint64) (parts [][]Event, next, lost uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.recorded - uint64(r.held())
	if n < first {
		lost, n = first-n, first
	}
	for i := int((n - first) / blockSize); i < len(r.blocks); i++ {
		ev := r.blocks[i].ev[:]
		if i == len(r.blocks)-1 {
			ev = append([]Event(nil), ev[:r.fill]...) // the rest of the block is still being written
		}
		if skip := int64(n-first) - int64(i)*blockSize; skip > 0 {
			ev = ev[min(int(skip), len(ev)):]
		}
		if len(ev) > 0 {
			parts = append(parts, ev)
		}
	}
	return parts, r.recorded, lost
}
