package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// lane is a queue of demands for memory.
type lane uint8

const (
	laneCreate lane = iota // creates and packs
	laneGet                // restores that a get waits for
	laneArgs               // restores that only arguments wait for
	lanes
)

// stage is how far a demand has come.
type stage uint8

const (
	stageWaiting   stage = iota // for room
	stageReserving              // has its block, memory is being put behind it
	stageReading                // a restore under way
	stageFallback               // a file is being made in place of a block
	stageDone
)

// demand asks for memory: a create, a restore or a pack.
type demand struct {
	lane    lane
	stage   stage
	ticket  uint64 // order of arrival
	need    uint64 // bytes
	since   int64  // when it was found to be stuck at the head of its lane; 0: it is not
	block   alloc.Block
	file    uint32
	path    string
	exact   bool // its reservation was tried again without the step
	cold    bool // its writer will bring the memory
	yielded bool // its task was asked for its CPU
	short   bool // its reservation failed, and it waited for what is backed already
	held    bool // a reservation for another job is under way where it could lie

	exchanging bool  // warm memory was given back for its reservation
	exchangeAt int64 // when that may be tried again

	// A create.
	job       ids.JobID // the client's
	client    ids.ClientID
	req       uint64
	id        ids.ObjectID
	attempt   uint32
	task      ids.TaskID
	cancelled bool

	// A restore.
	o     *object
	gets  []getter
	sets  []*argSet // one entry an argument
	tries int
	from  *object // that a copy is being made from in memory

	// A pack.
	pack *packing
}

// getter waits for a restore.
type getter struct {
	client ids.ClientID
	job    ids.JobID // whose owner asked
	id     ids.ObjectID
	sub    uint32
	note   uint64
	refs   []ids.ObjectID
}

// fifo is one lane. Demands that were withdrawn or moved stay in it until they reach
// the head.
type fifo struct {
	q    []*demand
	head int
}

func (f *fifo) push(d *demand) { f.q = append(f.q, d) }

// peek is the first demand that still waits in this lane.
func (f *fifo) peek(l lane) *demand {
	for f.head < len(f.q) {
		if d := f.q[f.head]; d.stage == stageWaiting && d.lane == l {
			return d
		}
		f.q[f.head] = nil
		f.head++
	}
	f.q, f.head = f.q[:0], 0
	return nil
}

// each visits those that still wait.
func (f *fifo) each(l lane, visit func(*demand)) {
	for _, d := range f.q[f.head:] {
		if d.stage == stageWaiting && d.lane == l {
			visit(d)
		}
	}
}

// pop takes the head off; peek gave it.
func (f *fifo) pop() {
	f.q[f.head] = nil
	f.head++
	if f.head == len(f.q) {
		f.q, f.head = f.q[:0], 0
	} else if f.head > 1024 && f.head*2 > len(f.q) {
		n := copy(f.q, f.q[f.head:])
		clear(f.q[n:])
		f.q, f.head = f.q[:n], 0
	}
}

// pushFront puts a demand back at the head.
func (f *fifo) pushFront(d *demand) {
	if f.head > 0 {
		f.head--
		f.q[f.head] = d
		return
	}
	f.q = append(f.q, nil)
	copy(f.q[1:], f.q)
	f.q[0] = d
}
