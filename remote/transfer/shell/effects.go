package shell

import (
	"fmt"

	"mobula/actors"
	"mobula/objectstore"
	"mobula/remote/transfer"
)

// do carries out an effect, on the actor's goroutine.
func (t *Transfer) do(self *actors.Ref[transfer.Event], f transfer.Effect) {
	switch f := f.(type) {
	case transfer.Dial:
		t.work.Go(func() { t.dial(f.Peer) })
	case transfer.Close:
		if c := t.conns.get(f.Conn); c != nil {
			c.close(f.Err)
		}
	case transfer.Write:
		if c := t.conns.get(f.Conn); c != nil {
			c.out.Add(outgoing{frame: f.Frame})
		}
	case transfer.WriteChunk:
		if c := t.conns.get(f.Conn); c != nil {
			c.out.Add(outgoing{frame: f.Chunk, data: t.memory.source(f), sum: f.Unsummed})
		}
	case transfer.Expect:
		t.memory.expect(f)
	case transfer.Unexpect:
		t.memory.unexpect(f.Token)
	case transfer.Export:
		t.o.Store(objectstore.Export{To: f.To, Token: f.Token, ID: f.Object.ID, Attempt: f.Object.Attempt})
	case transfer.Release:
		t.release(serveKey{f.To, f.Token})
	case transfer.Finish:
		t.finish(f)
	case transfer.After:
		if t.disarm != nil {
			t.disarm()
		}
		t.disarm = self.After(f.Delay, transfer.Timer{})
	default:
		panic(fmt.Sprintf("transfer: a core asks for a %T, which nobody does", f)) // a fault of the program
	}
}

// release gives back what the store has served, or tells it that it need not.
func (t *Transfer) release(k serveKey) {
	if s, ok := t.memory.unserve(k); ok {
		s.done()
	} else {
		t.o.Store(objectstore.ExportDone{To: k.to, Token: k.token})
	}
}

// finish ends fetches of one object, whose bytes are in the memory of the first. A store asks once for an object, so copies are rare.
func (t *Transfer) finish(f transfer.Finish) {
	all := t.memory.take(f.Fetches)
	for i := len(all) - 1; i >= 0; i-- {
		err := f.Err
		if i > 0 && err == nil {
			err = all[i].dst.Write(0, all[0].dst.Bytes)
		}
		all[i].done(err)
	}
}
