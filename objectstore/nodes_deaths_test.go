package objectstore

import (
	"fmt"
	"testing"
	"time"

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
						b.step(Drained{b.epoch})
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
