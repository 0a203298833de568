package shell

import "mobula/remote"

// driven is the core as the actor steps it: what a step has changed is saved before its effects run.
type driven struct {
	peer *peer
	core *remote.Peer

	// Of the present step.
	fx    []remote.Effect
	items []item
	sent  []byte // the message that it sends; nil: none
	batch *batch // that it steps; nil: none
}

// Step steps an event. One that comes again after a panic of its effects was stepped before: what else it asked for is asked for again, since all
// connections were closed.
func (d *driven) Step(now int64, ev event) []remote.Effect {
	done := ev.committed()
	if *done {
		return nil
	}
	clear(d.fx)
	d.fx, d.items, d.sent, d.batch = d.fx[:0], d.items[:0], nil, nil
	ev.step(now, d)
	d.commit()
	*done = true
	return d.fx
}

// step steps the core. What is for handlers is put aside.
func (d *driven) step(now int64, ev remote.Event) {
	for _, f := range d.core.Step(now, ev) {
		switch f := f.(type) {
		case *remote.Write, *remote.WriteAck: // of writes one, or those that bring a connection in use; of acknowledgements the last counts
			d.fx = append(d.fx, f)
		case *remote.Deliver:
			d.items = append(d.items, item{from: f.From, payload: f.Payload})
		case remote.Notice:
			d.items = append(d.items, item{notice: f})
		case remote.Full, remote.Room: // it is saved
		default:
			d.fx = append(d.fx, f)
		}
	}
}

// commit takes down what the step has changed.
func (d *driven) commit() {
	p := d.peer
	full := p.saved.kept.Full
	messages, bytes := p.saved.commit(d.core, d.sent)
	if messages > 0 || p.saved.kept.Full != full {
		p.gate.leave(messages, bytes, p.saved.kept.Full)
	}
	if len(d.items) > 0 {
		p.hand(d.items, d.batch != nil && d.batch.turn)
		clear(d.items)
	}
	if d.batch != nil {
		d.batch.stepped <- struct{}{}
	}
}
