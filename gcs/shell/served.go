package shell

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
	"mobula/internal/ids"
)

// Served is the tables as the service mobula-gcs gives them to a node that may not touch them itself. A Write or Delete with a row of another home
// is refused.
type Served struct {
	nc    *nats.Conn
	home  ids.Home
	epoch atomic.Uint64 // of the node's life; 0: it has not begun
	wrote wrote
	following
}

// NewServed uses a connection that was made for that home.
func NewServed(nc *nats.Conn, home ids.Home) *Served {
	s := &Served{nc: nc, home: home}
	s.following = following{nc: nc, home: home, wrote: &s.wrote}
	return s
}

// Life says which life of the home makes the calls from now on.
func (s *Served) Life(epoch uint64) { s.epoch.Store(epoch) }

// Do implements Tables. As long as no server answers it asks again, for half a minute or until the context ends.
func (s *Served) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	id := gcs.CallID(e)
	c, err := newCall(e, s.epoch.Load())
	if err != nil {
		return gcs.Answered{ID: id, Err: err}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return gcs.Answered{ID: id, Wrote: c.Op != opRead, Err: err}
	}
	a := persist(ctx, func(ctx context.Context) gcs.Answered {
		msg, err := s.nc.RequestWithContext(ctx, requests(s.home, "do"), data)
		var o outcome
		if err == nil {
			err = json.Unmarshal(msg.Data, &o)
		}
		if err != nil {
			return gcs.Answered{Wrote: c.Op != opRead, Err: away(err)}
		}
		return o.answered(c)
	})
	a.ID = id
	if w, ok := e.(gcs.Write); ok && a.Err == nil && !a.Conflict {
		s.wrote.note(w.Record.Bucket(), a.Revision)
	}
	return a
}
