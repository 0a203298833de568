package objectstore

import (
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/objectstore/alloc"
)

// demands is the demands for memory that wait, a lane for each kind.
type demands struct {
	*step
	space  *space
	queues [lanes]laneQueue
	ticket uint64
}

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
	lane          lane
	stage         stage
	ticket        uint64 // order of arrival
	need          uint64 // bytes
	since         int64  // when it was found to be stuck at the head of its lane; 0: it is not
	block         alloc.Block
	file          uint32
	node          ids.Home // that it is imported from
	path          string
	exact         bool // its reservation was tried again without the step
	cold          bool // its writer will bring the memory
	yielded       bool // its task was asked for its CPU
	reserveFailed bool // its reservation failed, and it waited for what is backed already
	held          bool // a reservation for another job is under way where it could lie

	takingFromOthers bool  // warm memory was given back for its reservation
	takeRetryAt      int64 // when that may be tried again

	// A create.
	job       ids.JobID // the client's
	client    ids.ClientID
	req       uint64
	id        ids.ObjectID
	attempt   uint32
	task      ids.TaskID
	cancelled bool
	imports   bool // its object is being read from node
	tries     uint8

	// A restore.
	o    *object
	gets []getter
	sets []*argSet // one entry an argument
	from *object   // that a copy is being made from in memory

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

// laneQueue is one lane. Demands that were withdrawn or moved stay in it until they reach the head.
type laneQueue struct{ queue.Queue[*demand] }

// peek is the first demand that still waits in this lane.
func (q *laneQueue) peek(l lane) *demand {
	for q.Len() > 0 {
		if d := q.Front(); d.waitsIn(l) {
			return d
		}
		q.Pop()
	}
	return nil
}

// each visits those that still wait.
func (q *laneQueue) each(l lane, visit func(*demand)) {
	for _, d := range q.All() {
		if d.waitsIn(l) {
			visit(d)
		}
	}
}

func (d *demand) waitsIn(l lane) bool { return d.stage == stageWaiting && d.lane == l }

// enqueue puts a demand at the end of its lane.
func (dm *demands) enqueue(d *demand) {
	dm.ticket++
	d.ticket, d.stage = dm.ticket, stageWaiting
	dm.space.lastDemandAt = dm.now
	dm.queues[d.lane].Push(d)
}

// dequeue takes a demand off its queue; one that is not the head stays there until it is, and is passed over.
func (dm *demands) dequeue(d *demand) {
	if dm.queues[d.lane].peek(d.lane) == d {
		dm.queues[d.lane].Pop()
	}
}
