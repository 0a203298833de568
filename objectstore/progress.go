package objectstore

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
