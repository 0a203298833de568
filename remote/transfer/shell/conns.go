package shell

import (
	"net"
	"sync"

	"mobula/remote/transfer"
)

// conns are the open connections.
type conns struct {
	mu     sync.Mutex
	last   transfer.ConnID           // guarded by mu
	open   map[transfer.ConnID]*conn // guarded by mu
	closed bool                      // guarded by mu: no more are taken
}

// add is nil once all is over.
func (cs *conns) add(raw net.Conn) *conn {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return nil
	}
	if cs.open == nil {
		cs.open = make(map[transfer.ConnID]*conn)
	}
	cs.last++
	c := newConn(cs.last, raw)
	cs.open[c.id] = c
	return c
}

func (cs *conns) get(id transfer.ConnID) *conn {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.open[id]
}

func (cs *conns) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c.id)
}

// closeAll closes the connections there are, and returns when nobody uses memory on their behalf any more.
func (cs *conns) closeAll(err error) {
	cs.mu.Lock()
	var all []*conn
	for _, c := range cs.open {
		all = append(all, c)
	}
	cs.mu.Unlock()
	for _, c := range all {
		c.close(err)
	}
	for _, c := range all {
		<-c.idle
	}
}

// shut is closeAll, and takes no more.
func (cs *conns) shut(err error) {
	cs.mu.Lock()
	cs.closed = true
	cs.mu.Unlock()
	cs.closeAll(err)
}
