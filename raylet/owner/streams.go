package owner

import (
	"math"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// missing returns the index of the first item without a value, once all items were made; -1: none. Such an item was lost after
// this attempt had passed it.
func (s *streamRec) missing() int {
	for i, o := range s.items {
		if o != nil && o.state == object.Pending {
			return i
		}
	}
	return -1
}

func (s *streamRec) join(cl *clientRec) {
	if !slices.Contains(s.readers, cl) {
		s.readers = append(s.readers, cl)
	}
}

func (s *streamRec) part(cl *clientRec) {
	s.readers = slices.DeleteFunc(s.readers, func(r *clientRec) bool { return r == cl })
}

// streaming returns the task if it is known and is a stream, else nil.
func (ss *streams) streaming(id ids.TaskID) *taskRec {
	if t := ss.tasks.task(id); t != nil && t.nret == wire.Streaming {
		return t
	}
	return nil
}

// newItem makes the record of an item; nil where the index is out of reach.
func (ss *streams) newItem(t *taskRec, i uint32) *objRec {
	s := t.x.stream
	if i >= maxReturns {
		return nil
	}
	for uint32(len(s.items)) <= i {
		s.items = append(s.items, nil)
	}
	o := &objRec{id: t.id().Return(int(i)), rec: t}
	s.items[i] = o
	t.live++
	if st := ss.objects.placeholders[o.id]; st != nil {
		ss.objects.fillPlaceholder(o, st)
	}
	if !s.closed {
		o.flags |= objHeld
		o.objs++
	}
	return o
}

// streamItem takes one item from its producer. An item that a former attempt made stays.
func (ss *streams) streamItem(cl *clientRec, m *wire.StreamItem) {
	t := ss.streaming(m.Task)
	id := m.Task.Return(int(m.Index))
	if t == nil || !ss.values.runs(cl, t, m.Attempt) {
		ss.dropItem(cl, id, m)
		ss.toClient(cl, &wire.StreamAck{Task: m.Task, Consumed: math.MaxUint32}) // nobody holds it up: it is to end
		return
	}
	if t.isElsewhere() {
		t.start = m.Attempt // as who makes it counts
	}
	s := t.x.stream
	o := s.item(m.Index)
	if o == nil {
		o = ss.newItem(t, m.Index)
	}
	if o == nil {
		ss.stopProducer(t)
		ss.up.fail(t, errs.New(errs.CodeInvalid, "%s streams more than %d items", t.name(), maxReturns))
		return
	}
	if o.state != object.Pending {
		if o.state != object.Stored || o.attempt != m.Attempt {
			ss.dropItem(cl, id, m)
		}
	} else {
		ss.setItem(cl, o, m)
	}
	s.produced = max(s.produced, m.Index+1)
	s.attempt, s.sent = m.Attempt, m.Index+1
	if m.Index < t.ackedIndex() || s.closed {
		ss.touchStream(t) // a further attempt, which does not know how far its readers are
	}
	ss.wakeReaders(t)
	ss.findMissingItem(t)
}

func (ss *streams) setItem(cl *clientRec, o *objRec, m *wire.StreamItem) {
	switch m.Result.Kind {
	case wire.ResultInline:
		res := m.Result
		ss.journal.logObject(o, &res, m.Attempt, ss.home())
		ss.objects.resolve(o, &res, object.SetInline)
	case wire.ResultStored: // its seal was lost on the way: missed at the end, and made again
		ss.dropItem(cl, o.id, m)
		o.rec.x.stream.holes = true
	default:
		res := errorResult(m.Result.Err)
		ss.journal.logObject(o, res, m.Attempt, ss.home())
		ss.objects.resolve(o, res, object.SetError)
	}
}

func (ss *streams) dropItem(cl *clientRec, id ids.ObjectID, m *wire.StreamItem) {
	if m.Result.Kind == wire.ResultStored {
		ss.toStoreAt(ss.nodeOf(cl), objectstore.DropAttempt{ID: id, Attempt: m.Attempt})
	}
}

// streamNext asks for an item, or the end.
func (ss *streams) streamNext(cl *clientRec, m *wire.StreamNext) {
	t, i := ss.streaming(m.Task), m.Index
	if t == nil {
		ss.toClient(cl, &wire.StreamItem{Task: m.Task, Index: i, Result: *errorResult(ss.objects.unknown(m.Task.Return(int(i))))})
		return
	}
	s := t.x.stream
	s.join(cl)
	if i > s.consumed && i <= maxReturns {
		s.consumed = i // who asks for an item has those before it
		ss.touchStream(t)
	}
	w := streamWait{cl, i, m.Leaves}
	answered, failed := ss.answerNext(t, w)
	if !answered {
		s.waits = append(s.waits, w)
	}
	if failed {
		ss.leaveStream(t, cl)
	}
}

// answerNext answers a reader if the item, or the end, is there. failed tells that the item is an error, after which the reader counts as gone. It does not
// where the reader is one that says itself that it leaves, or where the error contains references, which the reader has to take first.
func (ss *streams) answerNext(t *taskRec, w streamWait) (answered, failed bool) {
	s := t.x.stream
	m := &wire.StreamItem{Task: t.id(), Attempt: t.start, Index: w.index}
	o := s.item(w.index)
	switch {
	case w.index < s.produced && (o == nil || o.state == object.Pending):
		return false, false // lost, and being made again
	case w.index < s.produced && o.state == object.Freed:
		m.Result = *errorResult(ss.streamGone(t, o.id))
	case w.index < s.produced:
		m.Result = *o.res
		failed = !w.leaves && o.state == object.Failed && len(containedIn(o.res)) == 0
		o.flags |= objHandedOut
		if w.index >= s.consumed {
			s.consumed = w.index + 1
			ss.touchStream(t)
		}
	case s.err != nil:
		m.Result = *errorResult(s.err)
		if !w.leaves && len(s.held()) == 0 {
			ss.closeStream(t)
		} // else its reader says when it holds what is in the error
	case int64(w.index) < s.length && !t.state.Terminal(): // it runs again
		return false, false
	case int64(w.index) < s.length: // of what the log could not take a core that was rebuilt knows nothing
		m.Result = *errorResult(notLogged(t.id().Return(int(w.index))))
	case s.length >= 0:
		if !w.leaves {
			ss.closeStream(t)
		}
	case s.closed && t.state.Terminal():
		m.Result = *errorResult(ss.streamGone(t, t.id().Return(int(w.index))))
	default:
		return false, false
	}
	ss.toClient(w.client, m)
	return true, failed
}

func (ss *streams) streamGone(t *taskRec, id ids.ObjectID) *errs.Error {
	if err := t.x.stream.err; err != nil {
		return err
	}
	return ss.objects.unknown(id)
}

func (ss *streams) wakeReaders(t *taskRec) {
	s := t.x.stream
	if len(s.waits) == 0 {
		return
	}
	waits := s.waits
	s.waits = nil
	var left []*clientRec
	for _, w := range waits {
		answered, failed := ss.answerNext(t, w)
		if !answered {
			s.waits = append(s.waits, w)
		}
		if failed {
			left = append(left, w.client)
		}
	}
	for _, cl := range left {
		ss.leaveStream(t, cl)
	}
}

// endStream is the producer's end after n items. A run that differs from what was seen
// before in length is an error.
func (ss *streams) endStream(t *taskRec, n uint32) *errs.Error {
	s := t.x.stream
	switch {
	case s.length >= 0 && int64(n) != s.length:
		return errs.New(errs.CodeReturnMismatch, "%s streamed %d items when it ran again, %d before: it must depend on its arguments only", t.name(), n, s.length)
	case n < s.produced:
		return errs.New(errs.CodeReturnMismatch, "%s streamed %d items when it was tried again, at least %d before: it must depend on its arguments only", t.name(), n, s.produced)
	case n > s.produced:
		return errs.New(errs.CodeReturnMismatch, "%s reported %d items and sent %d", t.name(), n, s.produced)
	}
	s.length = int64(n)
	ss.wakeReaders(t)
	return nil
}

// failStream ends a stream with an error after the items that are there.
func (ss *streams) failStream(t *taskRec, err *errs.Error) {
	s := t.x.stream
	ss.setError(s, err)
	res := errorResult(err)
	s.eachItem(func(o *objRec) {
		if o.state == object.Pending {
			ss.objects.resolve(o, res, object.SetError)
		}
	})
	ss.wakeReaders(t)
}

// cutStream ends the stream of a cancelled task: its producer waits for no reader any more. A reader still gets the items there are, then
// the error, and the stream is closed when it has that or leaves. It is closed at once where nobody reads it.
func (ss *streams) cutStream(t *taskRec) {
	if t.nret != wire.Streaming || t.live == 0 {
		return
	}
	if len(t.x.stream.readers) > 0 {
		ss.touchStream(t)
		return
	}
	ss.closeStream(t)
}

// closeStream lets go of the items that nobody took. Those handed out stay until their
// reader has said that it holds them.
func (ss *streams) closeStream(t *taskRec) {
	s := t.x.stream
	if s.closed {
		return
	}
	ss.objects.releaseContained(s.held())
	s.closed = true
	t.live--
	ss.journal.logClosed(t)
	s.eachItem(func(o *objRec) {
		if o.flags&objHandedOut == 0 {
			ss.releaseItem(o)
		}
	})
	ss.touchStream(t)
	if t.live == 0 {
		ss.up.reap(t)
	}
}

// taken lets go of an item on which a client has a handle now.
func (ss *streams) taken(o *objRec) {
	if s := o.rec.x.stream; o.id.Index >= s.consumed {
		s.consumed = o.id.Index + 1
		ss.touchStream(o.rec)
	}
	ss.releaseItem(o)
}

func (ss *streams) releaseItem(o *objRec) {
	if o.flags&objHeld != 0 {
		o.flags &^= objHeld
		o.objs--
		ss.objects.queueRecount(o)
	}
}

// leaveStream removes a reader. Without readers a stream ends, and its task is cancelled. A task that has made all its items once is not: it runs again for
// an item that was lost, and somebody may hold that item.
func (ss *streams) leaveStream(t *taskRec, cl *clientRec) {
	s := t.x.stream
	s.part(cl)
	s.waits = slices.DeleteFunc(s.waits, func(w streamWait) bool { return w.client == cl })
	if len(s.readers) > 0 || s.anyone && cl.gone {
		return
	}
	if !t.state.Terminal() && s.length < 0 {
		if t.isElsewhere() {
			ss.tellProducer(t)
		}
		ss.up.cancelTask(t, false)
	}
	ss.closeStream(t)
	s.eachItem(ss.releaseItem)
}

// dropStreams removes a client from all streams, before its Holdings say which ones it reads.
func (ss *streams) dropStreams(cl *clientRec) {
	if ss.tasks.streamCount == 0 {
		return
	}
	ss.tasks.eachTask(func(t *taskRec) {
		if t.nret == wire.Streaming {
			t.x.stream.part(cl)
		}
	})
}

// leaveUnread ends, in a rebuilt core, the streams that nobody reads. That they were closed, or read to their end, the core before may not have
// logged.
func (ss *streams) leaveUnread() {
	var unread []*taskRec
	ss.tasks.eachTask(func(t *taskRec) {
		if t.nret != wire.Streaming {
			return
		}
		s := t.x.stream
		if s.anyone = false; len(s.readers) == 0 && !s.closed {
			unread = append(unread, t)
		}
	})
	for _, t := range unread {
		ss.leaveStream(t, nil)
	}
}

// reads tells whether a client is among a stream's readers.
func (s *streamRec) reads(cl *clientRec) bool { return slices.Contains(s.readers, cl) }

func (ss *streams) touchStream(t *taskRec) {
	s := t.x.stream
	if !s.dirty && (t.spec == nil || t.spec.Opts.Backpressure > 0) {
		s.dirty = true
		ss.dirtyStream = append(ss.dirtyStream, t)
	}
}

// flushStreams tells producers how far their readers are.
func (ss *streams) flushStreams() {
	for _, t := range ss.dirtyStream {
		s := t.x.stream
		s.dirty = false
		w := t.producer()
		if w == nil {
			continue
		}
		n := t.ackedIndex()
		if s.closed || t.flags&taskCancelled != 0 {
			n = math.MaxUint32 // nobody is waited for
		}
		if n > 0 {
			ss.toClient(w, &wire.StreamAck{Task: t.id(), Consumed: n})
		}
	}
	clear(ss.dirtyStream)
	ss.dirtyStream = ss.dirtyStream[:0]
}
