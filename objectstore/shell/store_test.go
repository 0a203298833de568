package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
	spillshell "mobula/objectstore/spill/shell"
	"mobula/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv(killedEnv) != "" {
		killedNode()
		return
	}
	goleak.VerifyTestMain(m)
}

// rig is a store with real memory, real spill files and clients in this process.
type rig struct {
	t       testing.TB
	sys     *actors.System
	mem     *Memory
	spiller *spillshell.Spiller
	store   *Store

	mu      sync.Mutex
	clients map[ids.ClientID]*user  // guarded by mu
	lost    []objectstore.Lost      // guarded by mu
	invent  []objectstore.Inventory // guarded by mu
	left    []objectstore.Left      // guarded by mu
	args    chan objectstore.ArgsPinned
}

// user is one client.
type user struct {
	r       *rig
	id      ids.ClientID
	mapping *segment.Mapping

	mu       sync.Mutex
	creates  map[uint64]*wire.Create       // unanswered
	answers  map[uint64]chan *wire.Created // guarded by mu
	gets     map[ids.ObjectID]chan *wire.Resolved
	pins     map[ids.ObjectID]uint32
	collects int
	next     uint64
}

func spillConfig(dir string) spillshell.Config {
	cfg := spillshell.Default("test")
	cfg.Dir = dir
	cfg.CapacityThreshold = 1
	return cfg
}

func newRig(t testing.TB, cfg objectstore.Config, scfg spillshell.Config, mem segment.Config) *rig {
	t.Helper()
	return newRigOf(t, cfg, scfg, mem, nil)
}

// newRigOf is newRig with other nodes.
func newRigOf(t testing.TB, cfg objectstore.Config, scfg spillshell.Config, mem segment.Config, others Peers) *rig {
	t.Helper()
	r := &rig{t: t, sys: actors.NewSystem(actors.Config{}), clients: map[ids.ClientID]*user{}, args: make(chan objectstore.ArgsPinned, 100)}
	var err error
	mem.Size = cfg.Limit
	if r.mem, err = OpenMemory(mem, index.Owner{Boot: "this run"}); err != nil {
		t.Fatal(err)
	}
	cfg.Limit = r.mem.Size()
	if r.spiller, err = spillshell.Open(scfg); err == nil {
		err = r.spiller.Start(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.store, err = Open(r.sys, Options{Config: cfg, Memory: r.mem, Spiller: r.spiller, Peers: others, ToClient: r.toClient, ToOwner: r.toOwner,
		Policy: actors.Policy{MaxRestarts: actors.Unlimited, Backoff: time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) close(remove bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	err := r.store.Stop(ctx)
	err = errors.Join(err, r.spiller.Close(ctx), r.sys.StopTree(ctx), r.mem.Close(remove))
	for _, u := range r.clients {
		err = errors.Join(err, u.mapping.Close())
	}
	if err != nil {
		r.t.Error(err)
	}
}

func (r *rig) post(ev objectstore.Event) {
	if err := r.store.Send(context.Background(), ev); err != nil {
		r.t.Errorf("%T: %v", ev, err)
	}
}

func (r *rig) toOwner(_ ids.JobID, m objectstore.OwnerMsg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := m.(type) {
	case objectstore.Lost:
		r.lost = append(r.lost, m)
	case objectstore.Inventory:
		if r.left = append(r.left, m.Left...); len(m.Left) == 0 {
			r.invent = append(r.invent, m)
		}
	case objectstore.ArgsPinned:
		r.args <- m
	}
}

func (r *rig) toClient(id ids.ClientID, m wire.Msg, f *os.File) {
	r.mu.Lock()
	u := r.clients[id]
	r.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch m := m.(type) {
	case *wire.Created:
		if c := u.answers[m.Req]; c != nil {
			delete(u.answers, m.Req)
			delete(u.creates, m.Req)
			c <- m
		}
	case *wire.Resolved:
		c := u.gets[m.ID]
		delete(u.gets, m.ID)
		if m.Result.Err == nil {
			u.pins[m.ID]++
		}
		if c == nil { // asked for once more after a panic
			go r.post(objectstore.FromClient{Client: id, Msg: &wire.Unpin{ID: m.ID, N: 1}})
			u.pins[m.ID]--
			return
		}
		c <- m
	case *wire.MapFile:
		if err := u.mapping.Add(m.File, f, m.Size); err != nil {
			r.t.Error(err)
		}
	case *wire.UnmapFile:
		if err := u.mapping.Drop(m.File); err != nil {
			r.t.Error(err)
		}
	case *wire.Collect:
		u.collects++
	case *wire.Resync:
		h := &wire.Holdings{Component: wire.ComponentStore, Epoch: m.Epoch}
		for o, n := range u.pins {
			if n > 0 {
				h.Pins = append(h.Pins, wire.Unpin{ID: o, N: n})
			}
		}
		evs := []objectstore.Event{objectstore.FromClient{Client: id, Msg: h}}
		for _, c := range u.creates {
			evs = append(evs, objectstore.FromClient{Client: id, Msg: c})
		}
		for _, ev := range evs {
			r.store.Deliver(ev)
		}
	}
}

func (r *rig) join(id ids.ClientID) *user {
	r.t.Helper()
	return r.joinJob(id, 1)
}

// joinJob joins a client of a job.
func (r *rig) joinJob(id ids.ClientID, job ids.JobID) *user {
	r.t.Helper()
	seg, err := r.store.Segment(context.Background(), job)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := segment.OpenMapping(seg.File(), seg.Size())
	if err != nil {
		r.t.Fatal(err)
	}
	u := &user{r: r, id: id, mapping: m, creates: map[uint64]*wire.Create{}, answers: map[uint64]chan *wire.Created{},
		gets: map[ids.ObjectID]chan *wire.Resolved{}, pins: map[ids.ObjectID]uint32{}}
	r.mu.Lock()
	r.clients[id] = u
	r.mu.Unlock()
	r.post(objectstore.ClientJoined{Client: id, PID: int32(os.Getpid()), Job: job})
	return u
}

func (u *user) create(id ids.ObjectID, size uint64, task ids.TaskID) *wire.Created {
	u.r.t.Helper()
	c := make(chan *wire.Created, 1)
	u.mu.Lock()
	u.next++
	m := &wire.Create{Req: u.next, ID: id, Size: size, Task: task}
	u.answers[m.Req], u.creates[m.Req] = c, m
	u.mu.Unlock()
	u.r.post(objectstore.FromClient{Client: u.id, Msg: m})
	select {
	case a := <-c:
		return a
	case <-time.After(testkit.Patience()):
		s, err := u.r.store.Stats(context.Background())
		u.r.t.Fatalf("create of %d bytes was not answered: %+v, %v", size, s, err)
		return nil
	}
}

// clientGone reports the end of a client, whose owner says that it had sealed nothing more.
func (r *rig) clientGone(id ids.ClientID) {
	r.t.Helper()
	r.post(objectstore.ClientGone{Client: id})
	r.stats() // the owner was asked
	r.mu.Lock()
	left := r.left
	r.left = nil
	r.mu.Unlock()
	for _, l := range left {
		r.post(objectstore.DropAttempt{ID: l.ID, Attempt: l.Attempt})
	}
}

func (u *user) put(id ids.ObjectID, data []byte) {
	u.r.t.Helper()
	m := u.create(id, uint64(len(data)), ids.TaskID{})
	if m.Err != nil {
		u.r.t.Fatalf("put of %d bytes: %v", len(data), m.Err)
	}
	if err := u.mapping.Write(m.Extent, data); err != nil {
		u.r.t.Fatal(err)
	}
	u.r.post(objectstore.SealObject{Client: u.id, ID: id, Size: uint64(len(data)), Meta: []byte("meta")})
}

func (u *user) get(id ids.ObjectID) ([]byte, error) {
	c := make(chan *wire.Resolved, 1)
	u.mu.Lock()
	u.gets[id] = c
	u.mu.Unlock()
	u.r.post(objectstore.PinForGet{Client: u.id, ID: id})
	select {
	case m := <-c:
		if m.Result.Err != nil {
			return nil, m.Result.Err
		}
		return u.mapping.Map(m.Extent, false)
	case <-time.After(testkit.Patience()):
		return nil, fmt.Errorf("get of %v was not answered", id)
	}
}

func (u *user) unpin(id ids.ObjectID) {
	u.mu.Lock()
	u.pins[id]--
	u.mu.Unlock()
	u.r.post(objectstore.FromClient{Client: u.id, Msg: &wire.Unpin{ID: id, N: 1}})
}

// pattern is the content of the n-th object. It is made once: the race detector is slow at it.
func pattern(n, size int) []byte {
	k := [2]int{n, size}
	if b, ok := patterns.Load(k); ok {
		return b.([]byte)
	}
	b := make([]byte, size)
	rand.New(rand.NewSource(int64(n))).Read(b)
	patterns.Store(k, b)
	return b
}

var patterns sync.Map

func (r *rig) stats() objectstore.Stats {
	r.t.Helper()
	s, err := r.store.Stats(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// filesLeft waits until at most n files of jobs are left at a path, and gives those that are.
func (r *rig) filesLeft(path string, n int) []string {
	r.t.Helper()
	left := filesAt(path)
	for end := time.Now().Add(testkit.Patience()); len(left) > n && time.Now().Before(end); left = filesAt(path) {
		r.stats() // once the store has done what was posted
	}
	return left
}

// fill puts n objects and reads all back, from several clients at once.
func (r *rig) fill(users []*user, n, size int) {
	r.t.Helper()
	var wg sync.WaitGroup
	for k, u := range users {
		wg.Go(func() {
			for i := k; i < n; i += len(users) {
				u.put(put(i), pattern(i, size))
			}
		})
	}
	wg.Wait()
	for k, u := range users {
		wg.Go(func() {
			for i := range n {
				i = (i + k*n/len(users)) % n
				b, err := u.get(put(i))
				if err != nil || !bytes.Equal(b, pattern(i, size)) {
					r.t.Errorf("object %d came back wrong: %d bytes, %v", i, len(b), err)
					return
				}
				u.unpin(put(i))
			}
		})
	}
	wg.Wait()
}

func (r *rig) freeAll(n int) {
	for i := range n {
		r.post(objectstore.Free{IDs: []ids.ObjectID{put(i)}})
	}
}

func TestFourTimesTheLimitThroughRealMemoryAndFiles(t *testing.T) {
	cfg := testConfig(16 * mib)
	cfg.MaxSpills, cfg.MaxRestores = 1, 1
	dir := t.TempDir()
	r := newRig(t, cfg, spillConfig(dir), segment.Config{})
	users := []*user{r.join(1), r.join(2), r.join(3)}
	const n, size = 64, mib
	r.fill(users, n, size)
	s := r.stats()
	if s.SpilledObjects < n/2 || s.Restores < n/2 || s.Held > s.Limit || s.Pinned != 0 || s.Fallbacks != 0 {
		t.Errorf("after four times the limit: %+v", s)
	}
	if blocks, err := r.mem.Blocks(); err != nil || blocks > 16*mib {
		t.Errorf("the segment takes %d bytes, %v", blocks, err)
	}
	r.freeAll(n)
	if s := r.stats(); s.Held != 0 || s.Objects != 0 || s.Spilled != 0 {
		t.Errorf("after everything was freed: %+v", s)
	}
	r.close(true)
	if left := filesIn(t, dir); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}

func filesIn(t testing.TB, dir string) []string {
	var out []string
	err := filepath.Walk(dir, func(p string, i os.FileInfo, err error) error {
		if err == nil && i.Mode().IsRegular() && i.Size() > 4096 {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The store panics again and again, at every kind of message, while clients work.
func TestThePanickingStoreLosesNothing(t *testing.T) {
	for _, message := range []string{"objectstore.FromClient", "objectstore.SealObject", "objectstore.PinForGet", "objectstore.SpillDone",
		"objectstore.RestoreDone", "objectstore.ReserveDone", "objectstore.Tick", "objectstore.PinArgs"} {
		t.Run(message, func(t *testing.T) {
			cfg := testConfig(8 * mib)
			r := newRig(t, cfg, spillConfig(t.TempDir()), segment.Config{})
			users := []*user{r.join(1), r.join(2)}
			for _, nth := range []int{3, 9, 20} {
				r.sys.Faults.Inject(actors.Fault{Kind: "objectstore", MessageType: message, Nth: nth, Action: actors.PanicMidStep})
			}
			const n, size = 40, mib / 2
			r.fill(users, n, size)
			for i := range 25 {
				r.post(objectstore.PinArgs{Job: 1, Task: task(i), Worker: 1, IDs: []ids.ObjectID{put(i), put(i + 1)}})
				select {
				case m := <-r.args:
					for k, v := range m.Values {
						b, err := users[0].mapping.Map(v.Extent, false)
						if err != nil || !bytes.Equal(b, pattern(i+k, size)) {
							t.Fatalf("argument %d of task %d is wrong: %v", k, i, err)
						}
					}
				case <-time.After(testkit.Patience()):
					t.Fatalf("task %d never got its arguments", i)
				}
				r.post(objectstore.UnpinArgs{Task: task(i)})
			}
			restarts := r.sys.Restarts()["objectstore"]
			if restarts == 0 && message != "objectstore.Tick" {
				t.Error("the store never panicked")
			}
			r.freeAll(n)
			if s := r.stats(); s.Held != 0 || s.Objects != 0 || s.OldClients != 0 {
				t.Errorf("after %d restarts and everything freed: %+v", restarts, s)
			}
			if len(r.lost) > 0 {
				t.Errorf("lost: %+v", r.lost)
			}
			r.close(true)
		})
	}
}

func TestAFallbackFileIsTheSameView(t *testing.T) {
	cfg := testConfig(8 * mib)
	cfg.Stall = 50 * time.Millisecond
	dir := t.TempDir()
	r := newRig(t, cfg, spillConfig(dir), segment.Config{})
	u, v := r.join(1), r.join(2)
	u.put(put(1), pattern(1, 5*mib))
	if _, err := u.get(put(1)); err != nil {
		t.Fatal(err)
	}
	u.put(put(2), pattern(2, 5*mib)) // beside the view, outside the segment
	b, err := v.get(put(2))
	if err != nil || !bytes.Equal(b, pattern(2, 5*mib)) {
		t.Fatalf("view of a fallback file: %d bytes, %v", len(b), err)
	}
	if s := r.stats(); s.Fallbacks != 1 || s.FallbackBytes != 5*mib || s.Held > s.Limit {
		t.Fatalf("%+v", s)
	}
	m := u.create(put(3), 6*mib, ids.TaskID{})
	if !errors.Is(m.Err, errs.ErrStoreFull) {
		t.Fatalf("beyond the disk budget: %+v", m)
	}
	for _, x := range []*user{u, v} {
		if _, err := x.mapping.Slice(wire.Extent{File: 1, Size: 1}, false); err != nil {
			t.Errorf("client %d: %v", x.id, err)
		}
	}
	f, err := os.Open(filesIn(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r.post(objectstore.Free{IDs: []ids.ObjectID{put(1), put(2)}})
	v.unpin(put(2))
	u.unpin(put(1))
	if s := r.stats(); s.FallbackBytes != 0 || s.Held != 0 {
		t.Fatalf("after the views were closed: %+v", s)
	}
	if left := filesIn(t, dir); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
	for _, x := range []*user{u, v} {
		if _, err := x.mapping.Slice(wire.Extent{File: 1, Size: 1}, false); err == nil {
			t.Errorf("client %d has the file mapped that was let go", x.id)
		}
	}
	var st unix.Stat_t // two clients have it mapped still
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Blocks != 0 {
		t.Errorf("the file that was let go has %d blocks of 512 bytes on its disk, %v", st.Blocks, err)
	}
	r.close(true)
}

func TestAClientsDeathFreesWhatItHeld(t *testing.T) {
	r := newRig(t, testConfig(8*mib), spillConfig(t.TempDir()), segment.Config{})
	u, v := r.join(1), r.join(2)
	u.put(put(1), pattern(1, 3*mib))
	if _, err := v.get(put(1)); err != nil {
		t.Fatal(err)
	}
	if m := v.create(put(2), 3*mib, ids.TaskID{}); m.Err != nil {
		t.Fatal(m.Err)
	}
	r.post(objectstore.Free{IDs: []ids.ObjectID{put(1)}})
	if s := r.stats(); s.Pinned != 3*mib || s.Granted != 3*mib {
		t.Fatalf("%+v", s)
	}
	why, err := r.store.Why(context.Background(), put(1))
	if err != nil || len(why) != 1 || why[0] != "pinned 1 times by client 2" {
		t.Fatalf("why is it kept: %q, %v", why, err)
	}
	r.clientGone(2)
	if s := r.stats(); s.Held != 0 || s.Objects != 0 || s.Grants != 0 {
		t.Fatalf("after the client died: %+v", s)
	}
	r.close(true)
}
