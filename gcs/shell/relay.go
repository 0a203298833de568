package shell

import (
	"context"
	"fmt"

	"mobula/gcs"
	"mobula/internal/inbox"
)

// relay shows a watcher the rows of the tables and then their changes, on a goroutine of its own: who passes them on does not wait for it.
type relay struct {
	rows    chan []gcs.Changed // of capacity 1: the rows, once
	changes *inbox.Inbox[gcs.Changed]
	end     context.CancelFunc
	shown   chan struct{} // closed when all rows were shown
	ended   chan struct{} // closed after the last call
}

// newRelay begins to call changed, until close or the end of the life.
func newRelay(life context.Context, changed func(gcs.Changed)) *relay {
	life, end := context.WithCancel(life)
	r := &relay{rows: make(chan []gcs.Changed, 1), changes: inbox.New[gcs.Changed](), end: end, shown: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		select {
		case rows := <-r.rows:
			for _, c := range rows {
				changed(c)
			}
			close(r.shown)
		case <-life.Done():
			return
		}
		for {
			select {
			case <-r.changes.Ready():
			case <-life.Done():
				return
			}
			for _, c := range r.changes.Take() {
				if life.Err() != nil {
					return
				}
				changed(c)
			}
		}
	}()
	return r
}

// await waits until all rows were shown. If ready ends first it ends the relay.
func (r *relay) await(ready context.Context) error {
	select {
	case <-r.shown:
		return nil
	case <-ready.Done():
		r.close()
		return fmt.Errorf("watch the tables: %w", context.Cause(ready))
	}
}

// relays are those of several watchers.
type relays []*relay

// pass passes a change on to all.
func (rs relays) pass(c gcs.Changed) {
	for _, r := range rs {
		r.changes.Add(c)
	}
}

// close ends all.
func (rs relays) close() {
	for _, r := range rs {
		r.close()
	}
}

// close waits for the last call.
func (r *relay) close() {
	r.end()
	<-r.ended
}
