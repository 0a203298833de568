package objectstore

import (
	"fmt"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// The owner of an object and the only node that has it are lost in the same moment, while the object is brought here: in whichever order that is heard, and
// however far it is, whoever waits is told, also of another job, and nothing is kept.
func TestAnOwnerAndAHolderDieTogether(t *testing.T) {
	for _, ownerFirst := range []bool{true, false} {
		for _, underWay := range []bool{true, false} {
			for _, panics := range []bool{false, true} {
				t.Run(fmt.Sprintf("owner first %v, under way %v, then a panic %v", ownerFirst, underWay, panics), func(t *testing.T) {
					all := newNodes(t, 2, testConfig(16*mib))
					a, b := all[0], all[1]
					a.nodes.hold = true
					a.join(1)
					a.put(1, put(1), 3*mib)
					b.join(10)
					b.joinJob(20, 2)
					b.tell(put(1), 3*mib, a)
					b.get(10, put(1))
					b.get(20, put(1))
					b.step(PinArgs{Job: 1, Task: task(1), Worker: 10, IDs: []ids.ObjectID{put(1)}})
					if underWay {
						b.runUntilAsked()
					}
					owner, holder := func() { b.step(DropJob{1}) }, func() { lose(all, a) }
					if ownerFirst {
						owner()
						holder()
					} else {
						holder()
						owner()
					}
					if panics {
						b.crash(true)
						b.step(Drained{Epoch: b.epoch})
					}
					settleAll(all[1:], time.Minute)
					b.step(ClientGone{10}) // the worker of the job that is over
					settleAll(all[1:], time.Minute)
					told := false
					for _, l := range b.lost {
						told = told || l.Client == 20
					}
					for i, r := range b.resolved {
						told = told || b.getter[i] == 20 && r.Result.Err != nil
					}
					if !told {
						t.Errorf("the client of the other job waits still: lost %+v, resolved %+v", b.lost, b.resolved)
					}
					if s := b.c.Stats(); s.Pinned != 0 || s.Held != 0 || len(b.c.all()) != 0 || b.notes.Len() != 0 {
						t.Errorf("left are %d objects, notes %v, %+v", len(b.c.all()), b.notes.List(), s)
					}
				})
			}
		}
	}
}

// A copy that came for another job is a holder like any other: its owner is told of it, and where the last other node with the object dies it is the object.
func TestACopyForAnotherJobOutlivesTheLastOtherNode(t *testing.T) {
	for _, ended := range []bool{false, true} { // the other job, meanwhile
		all := newNodes(t, 3, idleConfig())
		a, b, c := all[0], all[1], all[2]
		a.join(1)
		b.join(2)
		c.joinJob(3, 2)
		a.put(1, put(1), 3*mib)
		c.tell(put(1), 3*mib, a)
		c.get(3, put(1))
		settleAll(all, 0)
		if !c.got(put(1)) || c.imported != 1 {
			t.Fatalf("%+v; the owner is told of %d imports", c.resolved, c.imported)
		}
		if ended {
			c.unpin(3, put(1), 1)
			c.step(ClientGone{3})
			c.step(DropJob{Job: 2})
			if len(c.evicted) != 1 {
				t.Errorf("the owner is told of %d evictions of what came for a job that has ended", len(c.evicted))
			}
			continue
		}
		b.tell(put(1), 3*mib, a, c)
		b.get(2, put(1))
		for range 2 { // as the owner sees it, then as the store does
			c.tell(put(1), 3*mib)
		}
		lose(all, a)
		settleAll(all[1:], time.Minute)
		if !b.got(put(1)) || len(c.gone)+len(c.lost)+len(b.lost) != 0 {
			t.Fatalf("%+v; lost on node c %v, %+v, on node b %+v", b.resolved, c.gone, c.lost, b.lost)
		}
		c.unpin(3, put(1), 1)
		c.step(ClientGone{3})
		c.step(DropJob{Job: 2})
		c.join(4)
		for i := 2; i < 8; i++ { // all of the store
			c.putSlowly(4, put(i), 3*mib)
		}
		c.get(4, put(1))
		settleAll(all[1:], time.Minute)
		if !c.got(put(1)) || len(c.evicted) != 0 {
			t.Errorf("%+v; evicted %v, lost %v, %+v", c.resolved[len(c.resolved)-1], c.evicted, c.gone, c.lost)
		}
	}
}

// Where there is no room for it beside what is for the other job, a file holds it.
func TestTheLastCopyIsKeptInAFullStore(t *testing.T) {
	all := newNodes(t, 2, idleConfig())
	a, b := all[0], all[1]
	a.join(1)
	b.joinJob(2, 2)
	a.put(1, put(1), 9*mib)
	b.tell(put(1), 9*mib, a)
	b.get(2, put(1))
	settleAll(all, 0)
	lose(all, a)
	settleAll(all[1:], time.Minute)
	b.join(3)
	b.get(3, put(1))
	settleAll(all[1:], time.Minute)
	if !b.got(put(1)) || len(b.gone)+len(b.lost) != 0 {
		t.Errorf("%+v; lost %v, %+v", b.resolved, b.gone, b.lost)
	}
}

// What was let go meanwhile is kept no longer, however far that is. Where its job is over, no file of that is asked for again.
func TestTheLastCopyOfWhatWasLetGoIsNotKept(t *testing.T) {
	for _, over := range []bool{true, false} {
		for _, waits := range []bool{true, false} {
			for _, at := range []stage{stageWaiting, stageReserving, stageReading} {
				t.Run(fmt.Sprintf("its job is over %v, a client waits for it %v, at stage %d", over, waits, at), func(t *testing.T) {
					all := newNodes(t, 2, idleConfig())
					a, b := all[0], all[1]
					a.join(1)
					b.join(10)
					b.joinJob(2, 2)
					size := uint64(3 * mib)
					if at == stageWaiting { // the store is full
						size = 9 * mib
					}
					a.put(1, put(1), size)
					b.tell(put(1), size, a)
					b.get(2, put(1))
					settleAll(all, 0)
					if at == stageReading { // else it lies in memory until its copy is not read any more
						b.unpin(2, put(1), 1)
					}
					lose(all, a)
					d := b.c.objs[put(1)].o.restore
					for at == stageReading && d.stage != at {
						b.run(nil)
					}
					if d.stage != at {
						t.Fatalf("it is at stage %d", d.stage)
					}
					if waits {
						b.get(10, put(1))
					}
					if over {
						b.step(DropJob{1})
					} else {
						b.step(Free{[]ids.ObjectID{put(1)}})
					}
					b.step(ClientGone{10})
					b.noMem = true // where it is on its way, it does not come
					b.relist(0)
					if d := b.c.oldestDemand(); d != nil || b.noFile[1] != over {
						t.Errorf("a demand waits: %+v; the job's file is gone: %v", d, b.noFile[1])
					}
					b.noMem = false
					if at != stageReading {
						b.unpin(2, put(1), 1)
					}
					settleAll(all[1:], time.Minute)
					if s := b.c.Stats(); s.Held != 0 || s.Fallbacks != 0 || len(b.c.all()) != 0 || b.noFile[1] != over || b.notes.Len() != 0 || len(b.gone)+len(b.lost) != 0 {
						t.Errorf("left are %d objects, notes %v, %+v; lost %v, %+v", len(b.c.all()), b.notes.List(), s, b.gone, b.lost)
					}
				})
			}
		}
	}
}

// Its own job's client has asked for it, and does so no more, when no memory is there for what it would be brought to: it is kept all the same.
func TestTheLastCopyIsKeptThoughNobodyWaits(t *testing.T) {
	cfg := idleConfig()
	cfg.ColdFrom = 2 * mib
	all := newNodes(t, 2, cfg)
	a, b := all[0], all[1]
	a.nodes.hold = true
	a.join(1)
	b.join(10)
	b.joinJob(2, 2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	b.get(10, put(1))
	b.runUntilAsked()
	b.get(2, put(1))
	for goOn := true; goOn && len(b.nodes.asked) < 2; {
		goOn = b.run(nil)
	}
	for _, e := range a.nodes.read {
		if b.nodes.asked[e.Token].Place == 2 {
			a.sent(e)
		}
	}
	if !b.got(put(1)) || len(b.nodes.asked) != 1 {
		t.Fatalf("%+v; asked %v", b.resolved, b.nodes.asked)
	}
	b.step(UnpinForGet{Client: 10, ID: put(1)})
	for token, im := range b.nodes.asked {
		delete(b.nodes.asked, token)
		lose(all, a)
		b.step(RestoreDone{im.Job, errs.New(errs.CodeSegmentUnavailable, "no memory")})
	}
	settleAll(all[1:], time.Minute)
	b.unpin(2, put(1), 1)
	b.step(ClientGone{2})
	b.step(DropJob{2})
	b.get(10, put(1))
	settleAll(all[1:], time.Minute)
	if !b.got(put(1)) || len(b.gone)+len(b.lost) != 0 {
		t.Errorf("%+v; lost %v, %+v", b.resolved[len(b.resolved)-1], b.gone, b.lost)
	}
}

// The core is lost while the last copy, which came for another job, is being made the object's: a new core knows that it is the last, and goes on.
func TestAPanicLosesNoLastCopy(t *testing.T) {
	for _, underWay := range []bool{false, true} {
		for _, panics := range []int{1, 2} {
			for _, told := range []bool{false, true} { // that nobody else has it, by the owner too
				t.Run(fmt.Sprintf("under way %v, %d panics, told %v", underWay, panics, told), func(t *testing.T) {
					all := newNodes(t, 2, idleConfig())
					a, b := all[0], all[1]
					a.join(1)
					b.joinJob(2, 2)
					a.put(1, put(1), 3*mib)
					b.tell(put(1), 3*mib, a)
					b.get(2, put(1))
					settleAll(all, 0)
					b.unpin(2, put(1), 1)
					lose(all, a)
					if underWay {
						b.run(nil)
					}
					for range panics {
						b.crash(true)
						if told {
							b.tell(put(1), 3*mib)
						}
						b.step(Drained{Epoch: b.epoch})
					}
					settleAll(all[1:], time.Minute)
					b.step(ClientGone{2})
					b.step(DropJob{Job: 2})
					settleAll(all[1:], time.Minute)
					b.join(3)
					b.get(3, put(1))
					settleAll(all[1:], time.Minute)
					if !b.got(put(1)) || len(b.gone)+len(b.lost) != 0 {
						t.Errorf("%+v; lost %v, %+v", b.resolved, b.gone, b.lost)
					}
					b.unpin(3, put(1), 1)
					b.step(Free{[]ids.ObjectID{put(1)}})
					if s := b.c.Stats(); s.Held != 0 || len(b.c.all()) != 0 {
						t.Errorf("left are %d objects, %+v", len(b.c.all()), s)
					}
				})
			}
		}
	}
}

// A copy that came for another job stays one after a panic: where the last other node dies then, it is the object.
func TestACopyForAnotherJobIsOneAfterAPanic(t *testing.T) {
	all := newNodes(t, 2, idleConfig())
	a, b := all[0], all[1]
	a.join(1)
	b.joinJob(2, 2)
	a.put(1, put(1), 3*mib)
	b.tell(put(1), 3*mib, a)
	b.get(2, put(1))
	settleAll(all, 0)
	b.unpin(2, put(1), 1)
	b.crash(true)
	b.step(Drained{Epoch: b.epoch})
	lose(all, a)
	settleAll(all[1:], time.Minute)
	b.join(3)
	b.get(3, put(1))
	settleAll(all[1:], time.Minute)
	if !b.got(put(1)) || len(b.gone)+len(b.lost) != 0 {
		t.Errorf("%+v; lost %v, %+v", b.resolved, b.gone, b.lost)
	}
}
