package wire

// message appends the body of m; false: m is no message of this package. What is on a task's path comes first, and by hand
// where that is faster; encode_gen.go has the others.
func (e *encoder) message(m Msg) bool {
	switch m := m.(type) {
	case *Submit:
		nestTaskSpec(e, 1, m.Spec)
	case *Exec:
		e.uint(1, uint64(m.Lease))
		for i := range m.Tasks {
			nestExecTask(e, 2, &m.Tasks[i])
		}
	case *Done:
		writeDone(e, m)
	case *Get:
		writeGet(e, m)
	case *Resolved:
		writeResolved(e, m)
	case *Call:
		writeCall(e, m)
	case *Answered:
		writeAnswered(e, m)
	default:
		return e.cold(m)
	}
	return true
}

func writeDone(e *encoder, m *Done) {
	e.task(1, m.Task)
	e.uint(2, uint64(m.Attempt))
	e.uint(3, uint64(m.Lease))
	for i := range m.Results {
		nestResult(e, 4, &m.Results[i])
	}
	e.uint(5, uint64(m.Items))
	nestError(e, 6, m.Err)
	nestTimes(e, 7, &m.Times)
	e.bool(8, m.Final)
	e.bool(9, m.StillRuns)
	e.bool(10, m.Broke)
}

func nestTimes(e *encoder, num uint64, t *Times) {
	if *t == (Times{}) {
		return
	}
	at, ext := e.open(num)
	e.fixed64(1, uint64(t.Received))
	e.fixed64(2, uint64(t.Started))
	e.fixed64(3, uint64(t.Ended))
	e.close(at, ext)
}
