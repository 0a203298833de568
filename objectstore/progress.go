package objectstore

// progress is how spill writes and the head of the queue fare, and who was asked to let go of what.
type progress struct {
	*step
	disk        diskState
	stall       stallState
	fullDisk    fullDiskState
	lastCollect collectState
}

// diskState tells how spill writes fare.
type diskState struct {
	err     error // of the last write; nil: it worked
	fails   int
	first   int64 // of this series of failures
	retryAt int64
}

// stallState watches for progress of the head of the queue.
type stallState struct {
	best    uint64 // most bytes that were ever free or freeable while it waited
	stalled bool   // it waited out Stall; cleared by progress
}

// diskFull tells whether the last write to the disk, or the last file, had no room.
func (pr *progress) diskFull() bool { return pr.disk.err != nil || pr.fullDisk.fileErr != nil }

func (pr *progress) fullError() error {
	if pr.disk.err != nil {
		return pr.disk.err
	}
	return pr.fullDisk.fileErr
}

// noteProgress notes that something was let go, or has found room.
func (pr *progress) noteProgress() { pr.fullDisk.from = 0 }

// canSpill tells whether a write may be started, apart from how many are under way.
func (pr *progress) canSpill() bool {
	if pr.recovering {
		return false
	}
	if pr.now < pr.disk.retryAt {
		pr.wakeAt(pr.disk.retryAt)
		return false
	}
	return true
}
