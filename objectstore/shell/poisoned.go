package shell

import (
	"fmt"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// poisoned answers an event on which two cores panicked: who waits for its answer is told that none will come. The core that follows
// reads the rest from the index and the notes, and owners compare its inventory with what they know.
func (s *Store) poisoned(ev objectstore.Event, err error) {
	s.log.Error("the object store failed twice on an event and dropped it", "event", fmt.Sprintf("%T", ev), "err", err)
	why := errs.New(errs.CodeComponentFailed, "the object store failed twice on %T and dropped it: %v", ev, err)
	bye := func(c ids.ClientID) { s.o.ToClient(c, &wire.Bye{Err: why}, nil) }
	switch ev := ev.(type) {
	case objectstore.FromClient:
		bye(ev.Client)
	case objectstore.ClientJoined: // the store does not know it
		bye(ev.Client)
	case objectstore.PinForGet:
		bye(ev.Client)
	case objectstore.PinArgs:
		s.o.ToOwner(ev.Job, objectstore.ArgsRefused{Task: ev.Task, Attempt: ev.Attempt, Ask: ev.Ask, Err: why})
	}
}
