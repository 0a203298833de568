package wire

import "mobula/internal/ids"

func idOf(a ids.ActorID) ids.TaskID { return ids.TaskID(a) }

// message appends the body of m; false: m is no message of this package.
func (e *encoder) message(m Msg) bool {
	switch m := m.(type) {
	case *Hello:
		e.hello(m)
	case *Welcome:
		e.welcome(m)
	case *Bye:
		e.err(1, m.Err)
	case *Submit:
		e.spec(1, m.Spec)
	case *PutValue:
		e.object(1, m.ID)
		e.value(2, &m.Value)
	case *Seal:
		e.object(1, m.ID)
		e.uint(2, uint64(m.Attempt))
		e.uint(3, m.Size)
		e.value(4, &m.Value)
	case *Get:
		e.get(m)
	case *Unget:
		e.object(1, m.ID)
	case *AddRef:
		e.object(1, m.ID)
	case *Release:
		e.objects(1, m.IDs)
	case *Cancel:
		e.task(1, m.Task)
		e.bool(2, m.Force)
		e.bool(3, m.Recursive)
		e.bool(4, m.Insist)
	case *KillActor:
		e.task(1, idOf(m.Actor))
		e.bool(2, m.Restart)
		e.bool(3, m.Stop)
	case *Resolved:
		e.object(1, m.ID)
		e.bool(2, m.Fetch)
		e.result(3, &m.Result)
		e.extent(4, &m.Extent)
	case *Exec:
		e.uint(1, uint64(m.Lease))
		for i := range m.Tasks {
			e.execTask(2, &m.Tasks[i])
		}
	case *Done:
		e.done(m)
	case *StreamItem:
		e.task(1, m.Task)
		e.uint(2, uint64(m.Attempt))
		e.uint(3, uint64(m.Index))
		e.result(4, &m.Result)
	case *StreamNext:
		e.streamNext(m)
	default:
		return e.messageStore(m)
	}
	return true
}

// messageStore is the second half of message: the store's, the worker's and the cold ones.
func (e *encoder) messageStore(m Msg) bool {
	switch m := m.(type) {
	case *Create:
		e.uint(1, m.Req)
		e.object(2, m.ID)
		e.uint(3, uint64(m.Attempt))
		e.uint(4, m.Size)
		e.task(5, m.Task)
	case *Created:
		e.uint(1, m.Req)
		e.object(2, m.ID)
		e.extent(3, &m.Extent)
		e.bool(4, m.Exists)
		e.err(5, m.Err)
	case *Abort:
		e.object(1, m.ID)
		e.uint(2, uint64(m.Attempt))
	case *Unpin:
		e.unpin(m)
	case *MapFile:
		e.uint(1, uint64(m.File))
		e.uint(2, m.Size)
		e.bytes(3, []byte(m.Path))
	case *UnmapFile:
		e.uint(1, uint64(m.File))
	case *CancelTask:
		e.task(1, m.Task)
		e.bool(2, m.Abandon)
	case *StopActor:
		e.task(1, idOf(m.Actor))
		e.bool(2, m.Restarts)
		e.bool(3, m.Close)
		e.bool(4, m.Drain)
	case *ActorStopped:
		e.task(1, idOf(m.Actor))
		e.err(2, m.Err)
	case *WatchActor:
		e.task(1, idOf(m.Actor))
		e.bool(2, m.Done)
	case *ActorNews:
		e.task(1, idOf(m.Actor))
		e.uint(2, uint64(m.State))
		e.uint(3, uint64(m.Restarts))
		e.err(4, m.Err)
	case *StreamAck:
		e.task(1, m.Task)
		e.uint(2, uint64(m.Consumed))
	case *Unneeded:
		e.task(1, m.Task)
		e.numbers(2, m.Numbers)
	case *Blocked:
		e.task(1, m.Task)
		e.uint(2, uint64(m.Lease))
		for i := range m.Returned {
			e.taskID(3, &m.Returned[i])
		}
		e.objects(4, m.WaitsFor)
	case *Unblocked:
		e.task(1, m.Task)
		e.uint(2, uint64(m.Lease))
	case *Resume:
		e.task(1, m.Task)
	case *Stats:
		e.uint(1, m.HeapBytes)
		e.uint(2, m.Goroutines)
		e.uint(3, uint64(m.Running))
		e.bool(4, m.Worn)
	case *Request:
		e.uint(1, m.Req)
		e.string(2, m.Method)
		e.bytes(3, m.Body)
		e.trace(4, &m.Trace)
	case *Reply:
		e.uint(1, m.Req)
		e.bytes(2, m.Body)
		e.err(3, m.Err)
	case *Resync:
		e.uint(1, uint64(m.Component))
		e.uint(2, m.Epoch)
	case *Holdings:
		e.holdings(m)
	case *Credit:
		e.sint(1, m.Bytes)
	case *Drain, *Collect:
	default:
		return false
	}
	return true
}

func (e *encoder) hello(m *Hello) {
	e.uint(1, uint64(m.Version))
	e.uint(2, uint64(m.MinVersion))
	e.uint(3, uint64(m.Role))
	e.sint(4, int64(m.PID))
	e.uint(5, uint64(m.Job))
	e.bytes(6, m.Token)
	for i := range m.Functions {
		at, ext := e.open(7)
		e.string(1, m.Functions[i].Name)
		e.fixed64(2, m.Functions[i].Signature)
		e.close(at, ext)
	}
	e.string(8, m.Namespace)
	e.uint(9, uint64(m.Client))
	if m.Program != nil {
		at, ext := e.open(10)
		e.program(m.Program)
		e.close(at, ext)
	}
	for i := range m.Others {
		at, ext := e.open(11)
		e.program(&m.Others[i])
		e.close(at, ext)
	}
	e.bytes(12, m.Environ)
}

func (e *encoder) program(p *Program) {
	e.string(1, p.Language)
	e.string(2, p.Version)
	for _, a := range p.Args {
		e.text(3, a)
	}
	e.bool(4, p.Single)
	e.bool(5, p.Template)
}

func (e *encoder) welcome(m *Welcome) {
	e.uint(1, uint64(m.Version))
	e.uint(2, uint64(m.Client))
	e.string(3, m.Node)
	e.uint(4, uint64(m.Job))
	e.task(5, m.Root)
	e.uint(6, m.SegmentSize)
	e.uint(7, uint64(m.InlineMax))
	e.bytes(8, m.Token)
	e.string(9, m.Namespace)
	e.sint(10, int64(m.Slots))
	e.sint(11, int64(m.TraceMillionths))
	e.string(12, m.JobDir)
	e.string(13, m.Release)
	e.fixed64(14, uint64(m.Clock))
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

func (e *encoder) get(m *Get) {
	e.object(1, m.ID)
	e.bool(2, m.Fetch)
}

func (e *encoder) streamNext(m *StreamNext) {
	e.task(1, m.Task)
	e.uint(2, uint64(m.Index))
}

func (e *encoder) unpin(m *Unpin) {
	e.object(1, m.ID)
	e.uint(2, uint64(m.N))
}

func (e *encoder) holdings(m *Holdings) {
	e.uint(1, uint64(m.Component))
	e.uint(2, m.Epoch)
	e.objects(3, m.Handles)
	for i := range m.Gets {
		at, ext := e.open(4)
		e.get(&m.Gets[i])
		e.close(at, ext)
	}
	for i := range m.Streams {
		at, ext := e.open(5)
		e.streamNext(&m.Streams[i])
		e.close(at, ext)
	}
	for i := range m.Tasks {
		at, ext := e.open(6)
		e.task(1, m.Tasks[i].Task)
		e.uint(2, uint64(m.Tasks[i].Attempt))
		e.uint(3, uint64(m.Tasks[i].Lease))
		e.close(at, ext)
	}
	for i := range m.Actors {
		e.taskID(7, (*ids.TaskID)(&m.Actors[i]))
	}
	for i := range m.Pins {
		at, ext := e.open(8)
		e.unpin(&m.Pins[i])
		e.close(at, ext)
	}
}
