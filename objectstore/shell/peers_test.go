package shell

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/objectstore/spill"
)

// network is other nodes in this process. A node that it does not know cannot be reached.
type network struct {
	mu     sync.Mutex
	stores map[ids.Home]*Store // guarded by mu
	waits  map[uint64]fetch    // guarded by mu, by token
	token  uint64              // guarded by mu
	held   chan func()         // not nil: what is served waits here
}

type fetch struct {
	dst  *segment.Room
	done func(error)
}

// peers is the network as one node sees it.
type peers struct {
	n    *network
	home ids.Home
}

func (p peers) Fetch(from []ids.Home, id ids.ObjectID, attempt uint32, dst *segment.Room, done func(error)) {
	p.n.mu.Lock()
	s := p.n.stores[from[0]]
	p.n.token++
	token := p.n.token
	p.n.waits[token] = fetch{dst, done}
	p.n.mu.Unlock()
	if s == nil {
		done(errors.New("the node cannot be reached"))
		return
	}
	s.Deliver(objectstore.Export{To: p.home, Token: token, ID: id, Attempt: attempt})
}

func (p peers) Serve(_ ids.Home, token uint64, data []byte, err error, done func()) {
	send := func() {
		p.n.mu.Lock()
		f := p.n.waits[token]
		delete(p.n.waits, token)
		p.n.mu.Unlock()
		if err == nil {
			err = f.dst.Write(0, data)
		} else {
			err = fmt.Errorf("%w: %w", spill.ErrMissing, err)
		}
		done()
		f.done(err)
	}
	if p.n.held != nil {
		p.n.held <- send
		return
	}
	go send()
}

// newNetwork makes stores of homes 1 to n, each with a client of its own.
func newNetwork(t *testing.T, n int) (*network, []*rig, []*user) {
	net := &network{stores: map[ids.Home]*Store{}, waits: map[uint64]fetch{}}
	var rigs []*rig
	var users []*user
	for home := ids.Home(1); home <= ids.Home(n); home++ {
		r := newRigOf(t, testConfig(8*mib), spillConfig(t.TempDir()), segment.Config{}, peers{net, home})
		net.mu.Lock()
		net.stores[home] = r.store
		net.mu.Unlock()
		rigs, users = append(rigs, r), append(users, r.join(ids.ClientID(home)))
	}
	return net, rigs, users
}

func TestAnObjectOfAnotherNodeIsReadHere(t *testing.T) {
	_, rigs, users := newNetwork(t, 2)
	const n = 12 // more than the store holds: some are spilled there
	for i := range n {
		users[0].put(put(i), pattern(i, mib))
		rigs[1].post(objectstore.Located{ID: put(i), Size: mib, Meta: []byte("meta"), On: []ids.Home{9, 1}})
	}
	for i := range n {
		b, err := users[1].get(put(i))
		if err != nil || !bytes.Equal(b, pattern(i, mib)) {
			t.Fatalf("object %d: %d bytes, %v", i, len(b), err)
		}
		users[1].unpin(put(i))
	}
	if s := rigs[1].stats(); s.Imports < n || s.SpilledObjects != 0 || s.Lost != 0 {
		t.Errorf("here: %+v", s)
	}
	for _, r := range rigs {
		r.close(true)
	}
}

func TestAStoreThatPanicsServesOnce(t *testing.T) {
	net, rigs, users := newNetwork(t, 2)
	net.held = make(chan func(), 10)
	users[0].put(put(1), pattern(1, mib))
	rigs[1].post(objectstore.Located{ID: put(1), Size: mib, Meta: []byte("meta"), On: []ids.Home{1}})
	type answer struct {
		b   []byte
		err error
	}
	got := make(chan answer, 1)
	go func() {
		b, err := users[1].get(put(1))
		got <- answer{b, err}
	}()
	send := <-net.held
	rigs[0].post(objectstore.Free{IDs: []ids.ObjectID{put(1)}})
	rigs[0].sys.Faults.Inject(actors.Fault{Kind: "objectstore", MessageType: "objectstore.Inspect", Nth: 1, Action: actors.PanicMidStep})
	rigs[0].stats() // it may be answered before the panic
	rigs[0].stats()
	for i := 2; i < 9; i++ { // all the room there is
		users[0].put(put(i), pattern(i, mib))
	}
	send()
	if a := <-got; a.err != nil || !bytes.Equal(a.b, pattern(1, mib)) {
		t.Errorf("what was on its way while the store restarted: %d bytes, %v", len(a.b), a.err)
	}
	if len(net.held) != 0 {
		t.Error("it is served twice")
	}
	for _, r := range rigs {
		r.close(true)
	}
}

// A store that knows no other node says so, and loses nothing by it.
func TestAStoreAlone(t *testing.T) {
	r := newRig(t, testConfig(8*mib), spillConfig(t.TempDir()), segment.Config{})
	u := r.join(1)
	u.put(put(1), pattern(1, mib))
	r.post(objectstore.Export{To: 2, Token: 1, ID: put(1)})
	r.post(objectstore.Located{ID: put(2), Size: mib, On: []ids.Home{2}})
	r.post(objectstore.PinForGet{Client: 1, ID: put(2)})
	lost := func() []objectstore.Lost {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.lost
	}
	for end := time.Now().Add(testkit.Patience()); len(lost()) == 0 && time.Now().Before(end); {
		r.stats() // once the store has done what was posted
	}
	if l := lost(); len(l) != 1 || l[0].ID != put(2) || !errors.Is(l[0].Err, errs.ErrObjectLost) {
		t.Errorf("told of as lost: %+v", l)
	}
	if b, err := u.get(put(1)); err != nil || !bytes.Equal(b, pattern(1, mib)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if s := r.stats(); s.Pinned > mib+4096 || s.Objects != 1 {
		t.Errorf("%+v", s)
	}
	r.close(true)
}
