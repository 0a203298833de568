package wire

// The messages on a task's path. The others' fields are written by encode_gen.go.

func (e *encoder) submit(m *Submit) { e.spec(1, m.Spec) }

func (e *encoder) exec(m *Exec) {
	e.uint(1, uint64(m.Lease))
	for i := range m.Tasks {
		e.execTask(2, &m.Tasks[i])
	}
}

func (e *encoder) done(m *Done) {
	e.task(1, m.Task)
	e.uint(2, uint64(m.Attempt))
	e.uint(3, uint64(m.Lease))
	for i := range m.Results {
		e.result(4, &m.Results[i])
	}
	e.uint(5, uint64(m.Items))
	e.err(6, m.Err)
	if m.Times != (Times{}) {
		at, ext := e.open(7)
		e.fixed64(1, uint64(m.Times.Received))
		e.fixed64(2, uint64(m.Times.Started))
		e.fixed64(3, uint64(m.Times.Ended))
		e.close(at, ext)
	}
	e.bool(8, m.Final)
}
