package objectstore

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// give has a create answered within a time, and writes and seals it.
func (w *world) give(c ids.ClientID, id ids.ObjectID, size uint64, t ids.TaskID, within time.Duration) *wire.Created {
	w.t.Helper()
	r := w.create(c, id, 0, size, t)
	w.relist(int64(within))
	m := w.created[r]
	if m == nil || m.Err != nil {
		w.t.Fatalf("create of %d bytes: %+v; %s", size, m, w.c.figures(size))
	}
	w.write(c, 0, m)
	w.seal(c, 0, m, size)
	return m
}

// A task holds a small argument in each part of the store, as a merge of a shuffle does: there is no piece of a third of the store, whatever is spilled.
// It is served all the same, at once and as often as you like, though the results are kept: what nobody has pinned takes nothing of the disk budget.
func TestRoomInPiecesIsRoom(t *testing.T) {
	const limit = 64 * mib
	cfg := testConfig(limit)
	cfg.SpillThreshold = 1 // they lie in order
	w := newWorld(t, cfg)
	w.join(1, 11)
	const stride, tasks = 16, 12
	for n := range tasks {
		var all, args []ids.ObjectID
		for i := range limit / mib {
			id := put(n*100 + i)
			w.give(1, id, mib, ids.TaskID{}, 100*time.Millisecond)
			if all = append(all, id); i%stride == stride/2 {
				args = append(args, id)
			}
		}
		w.step(PinArgs{Job: 1, Task: task(n), Worker: 11, IDs: args})
		w.relist(0)
		if len(w.argsOK[NoteKey{Task: task(n)}].Values) != len(args) {
			t.Fatalf("the arguments of task %d are not there: %s", n, w.c.figures(0))
		}
		w.give(11, task(n).Return(0), limit/3, task(n), 100*time.Millisecond)
		w.step(UnpinArgs{Task: task(n)})
		w.step(Free{all})
		w.relist(int64(time.Second))
	}
	s := w.c.Stats()
	t.Logf("%d files, %d spilled, %d of them in files now", s.Fallbacks, s.SpilledBytes, s.FallbackBytes)
	if s.FallbackBytes > w.cfg.FallbackBytes {
		t.Errorf("%d bytes are in files that nobody has pinned", s.FallbackBytes)
	}
	for n := range tasks {
		w.step(PinForGet{Client: 1, ID: task(n).Return(0)})
		w.relist(int64(3 * time.Second))
		if m := w.resolved[len(w.resolved)-1]; len(w.resolved) != n+1 || m.Result.Err != nil {
			t.Fatalf("result %d: %+v", n, m)
		}
		w.unpin(1, task(n).Return(0), 1)
	}
}

// Tasks that all wait hold more than store and disk budget together. Only they can let go, so each in turn gets what it needs.
func TestTasksThatAllWaitAreServedBeyondTheDiskBudget(t *testing.T) {
	const limit = 16 * mib
	cfg := testConfig(limit)
	cfg.FallbackBytes = 2 * mib
	w := newWorld(t, cfg)
	w.join(1, 11)
	w.put(1, put(1), 5*mib)
	w.put(1, put(2), 5*mib)
	var reqs []uint64
	for n := 1; n <= 2; n++ {
		w.step(PinArgs{Job: 1, Task: task(n), Worker: 11, IDs: []ids.ObjectID{put(n)}})
	}
	for n := 1; n <= 2; n++ {
		reqs = append(reqs, w.create(11, task(n).Return(0), 0, 11*mib, task(n)))
	}
	for n := 1; n <= 2; n++ {
		w.relist(int64(3 * time.Second))
		m := w.created[reqs[n-1]]
		if m == nil || m.Err != nil {
			t.Fatalf("task %d: %+v; %s", n, m, w.c.figures(11*mib))
		}
		w.write(11, 0, m)
		w.seal(11, 0, m, 11*mib)
		w.step(UnpinArgs{Task: task(n)})
	}
}

// While a task goes on, which will let go, a store that is full is no error however long that takes.
func TestAFullStoreWaitsForTasksThatGoOn(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 11)
	w.put(1, put(1), 10*mib)
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 11, IDs: []ids.ObjectID{put(1)}})
	var pinned []ids.ObjectID
	for i := 2; i < 6; i++ { // 30 MiB of views, of 32
		w.give(1, put(i), []uint64{0, 0, 6, 10, 6, 8}[i]*mib, ids.TaskID{}, 4*time.Second)
		w.step(PinForGet{Client: 1, ID: put(i)})
		pinned = append(pinned, put(i))
	}
	r := w.create(1, put(9), 0, 9*mib, ids.TaskID{})
	w.relist(int64(10 * time.Second))
	if m := w.created[r]; m != nil {
		t.Fatalf("while a task holds an argument: %+v", m)
	}
	w.step(UnpinArgs{Task: task(1)})
	w.relist(int64(time.Second))
	if m := w.created[r]; m == nil || m.Err != nil {
		t.Fatalf("after it has ended: %+v", m)
	}
	r = w.create(1, put(10), 0, 9*mib, ids.TaskID{})
	w.relist(int64(10 * time.Second))
	m := w.created[r]
	if m == nil || !errors.Is(m.Err, errs.ErrStoreFull) {
		t.Fatalf("with views of %v and nobody else: %+v", pinned, m)
	}
	if text := m.Err.Error(); !strings.Contains(text, "the longest piece of it") {
		t.Errorf("%q does not say in what pieces the free bytes are", text)
	}
}

// pieces drives a store with tasks that hold small arguments and unsealed results, and a program that reads: sizes of anything up to the store's.
type pieces struct {
	*world
	rnd   *rand.Rand
	tasks []*pieceTask
	n     int
	views []ids.ObjectID // one reader's, oldest first
	all   []ids.ObjectID
}

// pieceTask is a task that makes some results, one after another, and then seals them all.
type pieceTask struct {
	id     ids.TaskID
	n      int
	sizes  []uint64
	asked  uint64 // the create that waits; 0: none
	made   []*wire.Created
	pinned bool
}

func TestEveryDemandIsServedWhilePinsLieAnywhere(t *testing.T) {
	for _, seed := range append(testkit.Seeds(t, 60), 1, 2, 3, 17960018511000047, 17960304142000050) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewSource(int64(seed)))
			limit := []uint64{mib, 16 * mib}[rnd.Intn(2)]
			cfg := testConfig(limit)
			cfg.MaxSpills, cfg.MaxRestores = 1+rnd.Intn(4), 1+rnd.Intn(4)
			cfg.FallbackBytes = limit / uint64(1+rnd.Intn(8))
			p := &pieces{world: newWorld(t, cfg), rnd: rnd}
			p.join(1, 2, 11)
			for range 120 {
				p.act()
			}
			p.end()
		})
	}
}

// size is any up to the store's without its index, mostly small.
func (p *pieces) size() uint64 {
	return 1 + uint64(p.rnd.Int63n(int64(p.cfg.Limit>>p.rnd.Intn(10))))
}

func (p *pieces) act() {
	p.n++
	switch p.rnd.Intn(8) {
	case 0, 1: // the program puts
		size := p.size()
		if p.c.keptBytes()+size > p.c.mostKept() {
			p.close() // or it is told to
		}
		r := p.create(1, put(p.n), 0, size, ids.TaskID{})
		p.settle(func() bool { return p.created[r] != nil })
		m := p.granted(r)
		p.write(1, 0, m)
		p.seal(1, 0, m, m.Extent.Size)
		p.all = append(p.all, m.ID)
	case 2: // it reads, a view at a time
		p.close()
		if len(p.all) > 0 {
			id := p.all[p.rnd.Intn(len(p.all))]
			before := len(p.resolved)
			p.step(PinForGet{Client: 2, ID: id})
			p.settle(func() bool { return len(p.resolved) > before })
			if m := p.resolved[before]; m.Result.Err != nil {
				p.t.Fatalf("get of %v: %v", id, m.Result.Err)
			}
			p.views = []ids.ObjectID{id}
		}
	case 3, 4:
		p.start()
	case 5: // the reader closes its view
		p.close()
	default:
		p.now += int64(p.rnd.Intn(int(100 * time.Millisecond)))
		p.step(Tick{})
		p.move()
	}
}

// start starts a task: what it holds and makes fits the store.
func (p *pieces) start() {
	if len(p.tasks) > 4 {
		return
	}
	x := &pieceTask{id: task(p.n), n: p.n}
	left := p.cfg.Limit - 64<<10
	var args []ids.ObjectID
	seen := map[ids.ObjectID]bool{}
	for range p.rnd.Intn(20) {
		if len(p.all) == 0 {
			break
		}
		id := p.all[p.rnd.Intn(len(p.all))]
		if o := p.c.objs[id].o; !seen[id] && o.footprint() < left/4 {
			seen[id] = true
			args, left = append(args, id), left-o.footprint()
		}
	}
	for range 1 + p.rnd.Intn(4) {
		n := min(p.size(), left/2)
		x.sizes, left = append(x.sizes, n), left-n
	}
	x.pinned = len(args) > 0
	if x.pinned {
		p.step(PinArgs{Job: 1, Task: x.id, Worker: 11, IDs: args})
	}
	p.tasks = append(p.tasks, x)
}

// move has each task go on that can.
func (p *pieces) move() {
	for p.run(p.rnd) {
	}
	for i := 0; i < len(p.tasks); i++ {
		x := p.tasks[i]
		if x.pinned && len(p.argsOK[NoteKey{Task: x.id}].Values) == 0 {
			continue
		}
		if x.asked != 0 {
			if p.created[x.asked] == nil {
				continue
			}
			m := p.granted(x.asked)
			p.write(11, 0, m)
			x.made, x.asked = append(x.made, m), 0
		}
		if n := len(x.made); n < len(x.sizes) {
			x.asked = p.create(11, x.id.Return(n), 0, x.sizes[n], x.id)
			continue
		}
		for _, m := range x.made {
			p.seal(11, 0, m, m.Extent.Size)
			p.all = append(p.all, m.ID)
		}
		if x.pinned {
			p.step(UnpinArgs{Task: x.id})
		}
		p.tasks = append(p.tasks[:i], p.tasks[i+1:]...)
		i--
	}
	if len(p.refused)+len(p.lost) > 0 {
		p.t.Fatalf("refused %+v, lost %+v", p.refused, p.lost)
	}
}

func (p *pieces) close() {
	for _, id := range p.views {
		p.unpin(2, id, 1)
	}
	p.views = nil
}

func (p *pieces) granted(r uint64) *wire.Created {
	p.t.Helper()
	m := p.created[r]
	if m.Err != nil {
		p.t.Fatalf("create: %v", m.Err)
	}
	return m
}

// settle lets tasks go on and time pass until something is done: a few stalls at most, as each may have to wait for one.
func (p *pieces) settle(done func() bool) {
	p.t.Helper()
	for range 200 {
		p.move()
		if done() {
			return
		}
		p.relist(int64(100 * time.Millisecond))
	}
	p.t.Fatalf("not served: %s; %+v", p.c.figures(0), p.c.Stats())
}

func (p *pieces) end() {
	p.settle(func() bool { return len(p.tasks) == 0 })
	p.close()
	p.relist(int64(time.Minute))
	if s := p.c.Stats(); s.GaveUp > 0 || s.FallbackBytes > p.cfg.FallbackBytes {
		p.t.Errorf("%d gave up, %d bytes are in files that nobody has pinned", s.GaveUp, s.FallbackBytes)
	}
}
