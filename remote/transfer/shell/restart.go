package shell

import (
	"mobula/actors"
	"mobula/remote/transfer"
)

// core is the core of one life.
type core struct {
	*transfer.Core
	t *Transfer
}

// Step drops a fetch that this life knows: build has begun it, while its event was on the way.
func (c core) Step(now int64, ev transfer.Event) []transfer.Effect {
	ofBuild := c.t.first > 0 // and behind it comes again what was in hand
	if ofBuild {
		c.t.first--
	} else {
		c.t.inHand = 0
	}
	if f, ok := ev.(transfer.Fetch); ok {
		if !ofBuild {
			c.t.inHand = f.ID
		}
		if !c.t.memory.begin(f.ID, c.t.life) {
			return nil
		}
	}
	return c.Core.Step(now, ev)
}

// build makes a core. After a panic nothing is left of what the one before had begun: all fetches but the one in hand, which comes again, begin anew.
func (t *Transfer) build(start actors.Start) (actors.Core[transfer.Event, transfer.Effect], []transfer.Event, error) {
	cfg := t.o.Config
	cfg.First += uint64(start.Restart) << 32
	t.life = start.Restart
	if start.Restart == 0 {
		return core{transfer.NewCore(cfg), t}, nil, nil
	}
	t.log.Warn("transfers between nodes begin anew", "reason", start.Reason)
	t.conns.closeAll(start.Reason)
	for _, s := range t.memory.release() {
		s.done()
	}
	var again []transfer.Event
	for _, f := range t.memory.underWay() {
		if f.event.ID != t.inHand {
			again = append(again, f.event)
		}
	}
	t.first = len(again)
	return core{transfer.NewCore(cfg), t}, again, nil
}

// poisoned answers an event that no core survives.
func (t *Transfer) poisoned(_ *actors.Ref[transfer.Event], ev transfer.Event, err error) {
	switch ev := ev.(type) {
	case transfer.Fetch:
		t.finish(transfer.Finish{Fetches: []transfer.FetchID{ev.ID}, Err: err})
	case transfer.Served:
		t.release(serveKey{ev.To, ev.Token})
	}
}
