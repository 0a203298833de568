package objectstore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// chaos drives a world with random clients, owners and faults, and keeps the books that
// the promises at the end are checked against.
type chaos struct {
	*world
	rnd          *rand.Rand
	clients      []ids.ClientID
	next         ids.ClientID
	njobs        int // whose processes make and read the objects, all of which are job 1's
	over         map[ids.JobID]bool
	open         map[uint64]creation // creates that are not answered
	granted      []grantOf
	gets         map[getOf]int // unanswered
	pins         map[getOf]int
	argsReq      map[NoteKey]ids.ClientID // asked and not dropped
	alive        map[ids.ObjectID]bool    // sealed and not freed
	freed        map[ids.ObjectID]bool
	seen         int // of resolved
	seenL        int // of lost
	copies       int // of spill files, that ended well
	lostInCopies int // cores, at the end of one
	n            int
}

type creation struct {
	client  ids.ClientID
	id      ids.ObjectID
	attempt uint32
	size    uint64
}

type grantOf struct {
	creation
	m *wire.Created
}

type getOf struct {
	client ids.ClientID
	id     ids.ObjectID
}

func newChaos(t testing.TB, seed uint64, limit uint64, tune ...func(*Config)) *chaos {
	cfg := testConfig(limit)
	rnd := rand.New(rand.NewSource(int64(seed)))
	cfg.MaxSpills, cfg.MaxRestores = 1+rnd.Intn(4), 1+rnd.Intn(4)
	cfg.ColdFrom = []uint64{0, 1, 64 << 10}[rnd.Intn(3)]
	switch rnd.Intn(4) {
	case 0:
		cfg.FallbackBytes = 0
	case 1:
		cfg.FallbackBytes = limit / uint64(1+rnd.Intn(16))
	}
	share := func() float64 { return []float64{1e-9, 0.1, 0.5, 0.8, 1}[rnd.Intn(5)] }
	if rnd.Intn(2) == 0 {
		cfg.SpillThreshold, cfg.ArgsFraction, cfg.CollectThreshold = share(), share(), share()
		cfg.MinSpillBytes = []uint64{1, 4096, limit, 100 << 20}[rnd.Intn(4)]
		cfg.MaxFused = []int{1, 2, 2000}[rnd.Intn(3)]
		cfg.ReserveStep = []uint64{4096, 64 << 10, 64 << 20}[rnd.Intn(3)]
		cfg.WarmBytes = []uint64{0, 4096, limit}[rnd.Intn(3)]
		cfg.CollectWait = time.Duration(rnd.Intn(2)) * 20 * time.Millisecond
	}
	for _, f := range tune {
		f(&cfg)
	}
	x := &chaos{world: newWorld(t, cfg), rnd: rnd, next: 1, open: map[uint64]creation{}, gets: map[getOf]int{}, pins: map[getOf]int{},
		argsReq: map[NoteKey]ids.ClientID{}, alive: map[ids.ObjectID]bool{}, freed: map[ids.ObjectID]bool{}}
	x.copied = x.copiedOrLost
	x.njobs, x.over = 1+rnd.Intn(3), map[ids.JobID]bool{}
	for range 4 {
		x.joinOne()
	}
	return x
}

// inOrder gives a map's keys in an order that does not change from run to run.
func inOrder[K comparable, V any](m map[K]V) []K {
	keys := slices.Collect(maps.Keys(m))
	slices.SortFunc(keys, func(a, b K) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return keys
}

func (x *chaos) joinOne() {
	x.clients = append(x.clients, x.next)
	j := ids.JobID(1 + x.rnd.Intn(x.njobs))
	switch {
	case x.over[j] && x.rnd.Intn(2) == 0: // the job is back
		delete(x.over, j)
		x.step(JobOpened{j})
	case x.over[j]:
		j = 1 // which is never over
	}
	x.joinJob(x.next, j)
	x.next++
}

func (x *chaos) client() ids.ClientID { return x.clients[x.rnd.Intn(len(x.clients))] }

func (x *chaos) object() (ids.ObjectID, bool) {
	all := make([]ids.ObjectID, 0, len(x.alive))
	for id := range x.alive {
		all = append(all, id)
	}
	if len(all) == 0 {
		return ids.ObjectID{}, false
	}
	slices.SortFunc(all, ids.ObjectID.Compare)
	return all[x.rnd.Intn(len(all))], true
}

// absorb takes in what the core has answered.
func (x *chaos) absorb() {
	for _, r := range inOrder(x.open) {
		c := x.open[r]
		m := x.created[r]
		if m == nil {
			continue
		}
		delete(x.open, r)
		if m.Err == nil && slices.Contains(x.clients, c.client) && x.c.grants[grantKey{c.id, c.attempt}] != nil {
			x.write(c.client, c.attempt, m)
			x.granted = append(x.granted, grantOf{c, m})
		}
	}
	slices.SortFunc(x.granted, func(a, b grantOf) int { return int(a.m.Req) - int(b.m.Req) })
	for ; x.seen < len(x.resolved); x.seen++ {
		m, k := x.resolved[x.seen], getOf{x.getter[x.seen], x.resolved[x.seen].ID}
		if !slices.Contains(x.clients, k.client) {
			continue
		}
		if m.Result.Err == nil {
			x.pins[k]++ // even if its get was withdrawn meanwhile
		}
		delete(x.gets, k)
	}
	for ; x.seenL < len(x.lost); x.seenL++ {
		l := x.lost[x.seenL]
		if l.Client != 0 {
			delete(x.gets, getOf{l.Client, l.ID})
		}
		k := NoteKey{Task: l.Task, Attempt: l.Attempt}
		if _, running := x.argsOK[k]; !l.Task.IsZero() && !running {
			delete(x.argsReq, k)
		}
	}
	for _, r := range x.refused {
		delete(x.argsReq, NoteKey{Task: r.Task, Attempt: r.Attempt})
	}
	x.refused = nil
}

func (x *chaos) act() {
	x.n++
	limit := int(x.cfg.Limit)
	switch x.rnd.Intn(30) {
	case 0, 1, 2, 3:
		c := creation{client: x.client(), id: put(x.n), attempt: uint32(x.rnd.Intn(2)), size: uint64(x.rnd.Intn(limit >> x.rnd.Intn(12)))}
		t := ids.TaskID{}
		if x.rnd.Intn(2) == 0 {
			t = task(x.rnd.Intn(5))
		}
		x.open[x.create(c.client, c.id, c.attempt, c.size, t)] = c
	case 4, 5, 6, 7:
		if len(x.granted) > 0 {
			x.finish(x.rnd.Intn(len(x.granted)), x.rnd.Intn(10) > 0)
		}
	case 8, 9, 10:
		if id, ok := x.object(); ok {
			g := getOf{x.client(), id}
			if x.gets[g] == 0 && x.pins[g] == 0 {
				x.gets[g] = 1
				x.step(PinForGet{Client: g.client, ID: id})
			}
		}
	case 11, 12, 13:
		x.dropPin()
	case 14:
		for _, g := range inOrder(x.gets) {
			delete(x.gets, g)
			x.step(UnpinForGet{g.client, g.id})
			break
		}
	case 15, 16:
		x.askArgs()
	case 17, 18:
		for _, k := range inOrder(x.argsReq) {
			delete(x.argsReq, k)
			delete(x.argsOK, k)
			x.step(UnpinArgs{k.Task, k.Attempt})
			break
		}
	case 19:
		x.step(ArgsIdle{task(x.rnd.Intn(5)), x.rnd.Intn(2) == 0})
	case 20:
		x.freeOne()
	case 21:
		x.packSome()
	case 22:
		x.now += int64(x.rnd.Intn(int(2 * time.Second)))
		x.timer = 0
		x.step(Tick{})
	case 28: // the job's owner was restarted
		keep := KeepArgs{Job: 1}
		for _, k := range inOrder(x.argsReq) {
			if x.rnd.Intn(2) == 0 {
				keep.Attempts = append(keep.Attempts, UnpinArgs{k.Task, k.Attempt})
			} else {
				delete(x.argsReq, k)
				delete(x.argsOK, k)
			}
		}
		x.step(keep)
	case 25:
		if len(x.granted) > 0 {
			g := x.granted[x.rnd.Intn(len(x.granted))]
			x.granted = slices.DeleteFunc(x.granted, func(o grantOf) bool { return o.id == g.id && o.attempt == g.attempt })
			delete(x.owned, owner{id: g.id, attempt: g.attempt, client: g.client})
			x.step(DropAttempt{ID: g.id, Attempt: g.attempt})
		}
	case 26:
		if id, ok := x.object(); ok && x.c.objs[id].o != nil && x.c.objs[id].o.values == nil {
			delete(x.alive, id)
			x.freed[id] = true
			x.step(DropAttempt{ID: id, Attempt: x.c.objs[id].o.attempt})
		}
	case 29:
		if x.njobs > 1 && x.rnd.Intn(8) == 0 {
			x.endJob(ids.JobID(2 + x.rnd.Intn(x.njobs-1)))
		}
	case 27:
		x.shaky = !x.shaky
	case 24:
		x.step(SetMemoryTarget{uint64(x.rnd.Intn(2) * x.rnd.Intn(limit))})
	case 23:
		switch x.rnd.Intn(6) {
		case 0:
			x.killClient()
		case 1:
			x.failing = !x.failing
		case 2:
			x.noMem = !x.noMem
		case 3:
			x.restart()
		}
	}
	x.absorb()
	for x.rnd.Intn(2) == 0 && x.run(x.rnd) {
		x.absorb()
	}
	x.checkArgs()
}

func (x *chaos) freeOne() {
	if id, ok := x.object(); ok {
		delete(x.alive, id)
		x.freed[id] = true
		x.step(Free{[]ids.ObjectID{id}})
	}
}

// checkArgs checks that what running tasks read stays as it was.
func (x *chaos) checkArgs() {
	for _, k := range inOrder(x.argsReq) {
		for _, v := range x.argsOK[k].Values {
			x.check(x.argsReq[k], v.ID, v.Extent)
		}
	}
}

func (x *chaos) finish(i int, seal bool) {
	g := x.granted[i]
	x.granted = slices.Delete(x.granted, i, i+1)
	if seal {
		size := g.size
		if x.rnd.Intn(4) == 0 && size > 0 {
			size = uint64(x.rnd.Intn(int(size))) + 1
		}
		x.seal(g.client, g.attempt, g.m, size)
		if _, ok := x.c.objs[g.id]; !ok {
			x.t.Fatalf("sealed %v is not there: %+v, %+v", g.id, g, x.lost)
		}
		x.alive[g.id] = true
		return
	}
	delete(x.owned, owner{id: g.id, attempt: g.attempt, client: g.client})
	x.step(FromClient{g.client, &wire.Abort{ID: g.id, Attempt: g.attempt}})
}

func (x *chaos) dropPin() {
	for _, g := range x.sortedPins() {
		n := x.pins[g]
		delete(x.pins, g)
		x.unpin(g.client, g.id, uint32(n))
		return
	}
}

func (x *chaos) sortedPins() []getOf {
	out := make([]getOf, 0, len(x.pins))
	for g := range x.pins {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b getOf) int {
		if a.client != b.client {
			return int(a.client) - int(b.client)
		}
		return a.id.Compare(b.id)
	})
	x.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (x *chaos) askArgs() {
	k := NoteKey{Task: task(x.rnd.Intn(5)), Attempt: uint32(x.n)}
	var list []ids.ObjectID
	for range 1 + x.rnd.Intn(4) {
		if id, ok := x.object(); ok {
			list = append(list, id)
		}
	}
	if len(list) > 0 {
		c := x.client()
		if x.rnd.Intn(2) == 0 {
			x.step(ReadAhead{IDs: list})
		}
		if x.rnd.Intn(4) == 0 {
			return
		}
		x.argsReq[k] = c
		x.step(PinArgs{Job: 1, Task: k.Task, Attempt: k.Attempt, Worker: c, IDs: list})
	}
}

func (x *chaos) packSome() {
	p := Pack{Job: 1}
	for i := range 1 + x.rnd.Intn(20) {
		x.tag++
		data := fmt.Appendf(nil, "%08d", x.tag)
		data = append(data, make([]byte, x.rnd.Intn(3000))...)
		id := root.Return(x.n*32 + i)
		p.Values = append(p.Values, PackValue{id, wire.Value{Meta: []byte{1, 7}, Data: data}})
		x.sealed[id] = tagOf(data)
	}
	x.step(p)
	for x.run(nil) {
	}
	for _, v := range p.Values {
		if x.packed[v.ID] {
			x.alive[v.ID] = true
		}
	}
	for id := range x.packed {
		if _, ok := x.c.objs[id]; ok && !x.freed[id] {
			x.alive[id] = true // packed later
		}
	}
}

func (x *chaos) killClient() {
	i := x.rnd.Intn(len(x.clients))
	c := x.clients[i]
	x.clients = slices.Delete(x.clients, i, i+1)
	x.forgetClient(c)
	x.step(ClientGone{c})
	x.joinOne()
}

// endJob ends a job other than the objects': its processes go, and what they made stays.
func (x *chaos) endJob(j ids.JobID) {
	x.over[j] = true
	x.step(DropJob{j})
	for _, c := range slices.Clone(x.clients) {
		if x.job[c] == j {
			x.clients = slices.DeleteFunc(x.clients, func(y ids.ClientID) bool { return y == c })
			x.forgetClient(c)
			x.step(ClientGone{c})
			x.joinOne()
		}
	}
}

func (x *chaos) forgetClient(c ids.ClientID) {
	for o := range x.owned {
		if o.client == c {
			delete(x.owned, o)
		}
	}
	for r, o := range x.open {
		if o.client == c {
			delete(x.open, r)
		}
	}
	x.granted = slices.DeleteFunc(x.granted, func(g grantOf) bool { return g.client == c })
	for g := range x.gets {
		if g.client == c {
			delete(x.gets, g)
		}
	}
	for g := range x.pins {
		if g.client == c {
			delete(x.pins, g)
		}
	}
	for k, w := range x.argsReq {
		if w == c {
			delete(x.argsReq, k)
			delete(x.argsOK, k)
		}
	}
}

// restart is a panic of the store's actor: the process and its clients live on.
func (x *chaos) restart() {
	x.resyncs = nil
	idle := x.idleSets()
	x.crash(true)
	now := x.idleSets() // and further attempts, which the restart has let in
	for k := range idle {
		if !now[k] {
			x.t.Fatalf("a task that waits in a get held arguments, and not after the restart: %v", k)
		}
	}
	x.absorb()
	old := x.jobs
	x.jobs = nil
	early := x.rnd.Intn(2) == 0
	if early {
		x.recoverJobs(old)
	}
	if len(x.resyncs) != len(x.clients) {
		x.t.Fatalf("%d of %d clients were asked what they hold", len(x.resyncs), len(x.clients))
	}
	for _, c := range x.clients {
		h := &wire.Holdings{Component: wire.ComponentStore, Epoch: x.epoch}
		for g, n := range x.pins {
			if g.client == c {
				h.Pins = append(h.Pins, wire.Unpin{ID: g.id, N: uint32(n)})
			}
		}
		x.step(FromClient{c, h})
		var again []uint64
		for r, o := range x.open {
			if o.client == c {
				again = append(again, r)
			}
		}
		slices.Sort(again)
		for _, r := range again {
			o := x.open[r]
			x.step(FromClient{c, &wire.Create{Req: r, ID: o.id, Attempt: o.attempt, Size: o.size}})
		}
	}
	if !early {
		x.recoverJobs(old)
	}
	x.absorb()
}

// copiedOrLost tells the core that objects were written anew. Sometimes it is lost while it does what comes of that; the next one is told again.
func (x *chaos) copiedOrLost(e SpillDone) {
	if e.Err == nil {
		x.copies++
	}
	if x.stale || x.rnd.Intn(2) == 0 {
		x.step(e)
		return
	}
	left := x.rnd.Intn(2*len(e.Locs) + 2)
	lost := errors.New("the core is lost")
	func() {
		defer func() {
			if v := recover(); v != nil && v != lost {
				panic(v)
			}
		}()
		x.show = func(Effect) {
			if left--; left < 0 {
				panic(lost)
			}
		}
		x.step(e)
	}()
	if x.show = nil; left < 0 {
		x.lostInCopies++
		x.restart()
		x.retold = true
		x.step(e)
		x.retold = false
	}
}

// idleSets counts arguments that are held and not counted, of sets that a new core holds as a whole: of an object that was freed it may know nothing.
func (x *chaos) idleSets() map[NoteKey]bool {
	out := make(map[NoteKey]bool)
	freed := func(id ids.ObjectID) bool { return x.freed[id] }
	for t, l := range x.c.sets {
		for _, s := range l {
			if s.answered && s.idle && !slices.ContainsFunc(s.req.IDs, freed) {
				out[NoteKey{Task: t, Attempt: s.req.Attempt}] = true
			}
		}
	}
	return out
}

// waitAll lets time pass, for a while at least, and until nobody waits.
func (x *chaos) waitAll(rounds int) {
	for i := 0; i < 200 || i < rounds && len(x.open)+len(x.c.waiting)+len(x.gets) > 0; i++ {
		x.relist(int64(2 * time.Second))
		x.absorb()
	}
}

// end checks that nobody waits for ever, that nothing sealed is lost, and that nothing is left.
func (x *chaos) end() {
	t := x.t
	x.failing, x.noMem, x.shaky = false, false, false
	x.waitAll(2000) // nobody lets go of anything: each wait ends all the same
	if len(x.open) > 0 || len(x.c.waiting) > 0 {
		t.Fatalf("%d creates were never answered: %+v", len(x.open), x.c.Stats())
	}
	if len(x.gets) > 0 {
		t.Fatalf("%d gets were never answered: %v, %+v", len(x.gets), x.gets, x.c.Stats())
	}
	for len(x.pins) > 0 {
		x.dropPin()
	}
	for len(x.granted) > 0 {
		x.finish(0, true)
		x.relist(int64(2 * time.Second))
	}
	for range 200 {
		x.relist(int64(2 * time.Second))
		for _, k := range inOrder(x.argsReq) {
			if _, ok := x.argsOK[k]; ok || x.c.findSet(k.Task, k.Attempt) == nil {
				delete(x.argsReq, k)
				x.step(UnpinArgs{k.Task, k.Attempt})
			}
		}
		x.absorb()
	}
	if len(x.argsReq) > 0 {
		t.Fatalf("%d tasks never got their arguments: %+v", len(x.argsReq), x.c.Stats())
	}
	for _, id := range inOrder(x.alive) { // each object that was sealed can be read
		before := len(x.resolved)
		x.step(PinForGet{Client: x.clients[0], ID: id})
		x.relist(int64(3 * time.Second))
		if len(x.resolved) != before+1 || x.resolved[before].Result.Err != nil {
			if len(x.resolved) > before {
				t.Log(x.resolved[before].Result.Err)
			}
			t.Fatalf("object %v cannot be read any more: %+v, %+v, %+v", id, x.resolved[before:], x.lost, x.c.Stats())
		}
		x.unpin(x.clients[0], id, 1)
	}
	x.step(DropJob{1})
	for _, c := range x.clients {
		x.forgetClient(c)
		x.step(ClientGone{c})
	}
	x.relist(int64(60 * time.Second))
	if s := x.c.Stats(); s.Held != 0 || s.Objects != 0 || s.FallbackBytes != 0 || s.Args != 0 || s.Backed > x.cfg.WarmBytes+4096 {
		t.Fatalf("left over: %+v", s)
	}
	if len(x.disk) != 0 || len(x.files) != 0 || len(x.records) != 0 || x.notes.Len() != 0 {
		t.Fatalf("left over: %d spilled, %d files, %d records, %d notes", len(x.disk), len(x.files), len(x.records), x.notes.Len())
	}
}

func TestChaos(t *testing.T) {
	seeds, steps := 60, 400
	if testing.Short() {
		seeds = 10
	}
	if os.Getenv("MOBULA_STRESS") != "" {
		seeds = 4000
	}
	failed := []uint64{
		3_000_055,      // an argument of a task that waits in a get was freed, and then came a restart
		11_000_028,     // what a dropped attempt had left in a file kept it after a restart, and there was no room for another
		144, 763, 2051, // the same
		17_958_940_801_003_780, // who sealed nothing had touched no page of what was granted cold
	}
	for _, seed := range append(testkit.Seeds(t, seeds), failed...) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := newChaos(t, seed, []uint64{mib, 300 * 1024, 8 * mib}[seed%3])
			for range steps {
				x.act()
			}
			x.end()
		})
	}
}

func TestALostCopyIsForgottenAndSaid(t *testing.T) {
	for _, broken := range []error{fmt.Errorf("file 7: %w", spill.ErrCorrupt), fmt.Errorf("file 7: %w", spill.ErrMissing)} {
		w := newWorld(t, testConfig(16*mib))
		w.join(1)
		w.put(1, put(1), 10*mib)
		w.put2(1, put(2), 12*mib)
		w.broken = broken
		w.step(PinForGet{Client: 1, ID: put(1)})
		w.step(PinArgs{Job: 1, Task: task(1), Worker: 1, IDs: []ids.ObjectID{put(1)}})
		w.step(FromClient{1, &wire.Abort{ID: put(2)}})
		w.relist(int64(2 * time.Second))
		if len(w.lost) != 2 || w.lost[0].Client != 1 || w.lost[1].Task != task(1) || w.c.alloc.Held() != 0 || len(w.c.objs) != 0 {
			t.Fatalf("%v: lost %+v, held %d", broken, w.lost, w.c.alloc.Held())
		}
	}
}
