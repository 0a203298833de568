package objectstore

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
