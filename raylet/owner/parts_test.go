package owner

import (
	"reflect"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lint/parts"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// Parts refer to the parts below them only: what they ask of those above is an interface of their own.
func TestPartsKnowOnlyThoseBelow(t *testing.T) { parts.InOrder(t, reflect.TypeFor[Core](), 15) }

// above stands for the parts above one that is tested alone, and keeps what they were asked.
type above struct {
	answered []*objRec
	reaped   []*taskRec
	remade   []*objRec
}

func (a *above) answer(_ *clientRec, o *objRec, _ bool) { a.answered = append(a.answered, o) }
func (a *above) reap(t *taskRec)                        { a.reaped = append(a.reaped, t) }
func (a *above) remake(o *objRec) bool {
	a.remade = append(a.remade, o)
	o.state = object.Pending
	return true
}
func (a *above) cannotRemake(*objRec) *errs.Error  { return errs.New(errs.CodeObjectLost, "gone") }
func (a *above) waitGet(*clientRec, *objRec, bool) {}
func (a *above) maybeUnneeded(*objRec)             {}
func (a *above) taken(*objRec)                     {}
func (a *above) lastHandleReleased(*actorRec)      {}
func (a *above) object(ids.ObjectID) *objRec       { return nil }
func (a *above) objectLost(*objRec, *errs.Error)   {}

// alone makes the parts that objects are made of, and nothing else.
func alone() (*objects, *above) {
	s := &step{cfg: Config{Job: 1}.withDefaults(), effects: make([]Effect, 1)}
	a := &above{}
	j := newJournal(s)
	return newObjects(s, j, newTasks(s), newCopies(s, j, a), newBorrows(s, nil), a), a
}

func put(os *objects, n uint64) *objRec {
	o := &objRec{id: ids.ObjectID{Task: ids.RootTask(1, n), Index: ids.PutBit}}
	os.puts.add(o)
	return o
}

// An object lives as long as a handle, a task or another object refers to it, and what lies inside it as long as it does.
func TestObjectsLiveAsLongAsSomethingRefersToThem(t *testing.T) {
	os, _ := alone()
	cl := &clientRec{id: 7}
	inner, outer := put(os, 1), put(os, 2)
	os.giveHandle(cl, outer)
	os.resolve(inner, &wire.Result{Kind: wire.ResultStored, Size: 1}, object.SetStored)
	os.resolve(outer, &wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("v"), Refs: []ids.ObjectID{inner.id}}}, object.SetInline)
	os.collectUnreferenced()
	if os.object(inner.id) != inner || os.object(outer.id) != outer {
		t.Fatal("an object that is referred to is gone")
	}
	os.takeHandle(cl, outer)
	os.collectUnreferenced()
	if os.object(inner.id) != nil || os.object(outer.id) != nil || cl.handles != 0 {
		t.Errorf("what nothing refers to is still there: %v, %v, %d handles", os.object(outer.id), os.object(inner.id), cl.handles)
	}
	if len(os.copies.frees) != 1 || os.copies.frees[0] != inner.id {
		t.Errorf("the store is to free %v, want the one that lies there", os.copies.frees)
	}
	if len(os.journal.forgot) != 2 {
		t.Errorf("the log is to forget %d objects, want 2", len(os.journal.forgot))
	}
}

// Who waits for an object is told when it is resolved, once.
func TestObjectsAnswerThoseWhoWait(t *testing.T) {
	os, up := alone()
	gs := &gets{step: os.step, objects: os, clients: newClients(os.step), up: up}
	first, second := gs.clients.addClient(7, wire.RoleDriver), gs.clients.addClient(8, wire.RoleWorker)
	o := put(os, 1)
	os.giveHandle(first, o)
	gs.get(first, o.id, false)
	gs.get(second, o.id, false)
	os.resolve(o, &wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("v")}}, object.SetInline)
	if len(up.answered) != 2 || o.waits != nil || o.flags&objGet != 0 {
		t.Errorf("%d answers, and %v still waits", len(up.answered), o.waits)
	}
}

// A get of a dropped value has it made again, and waits.
func TestGetsMakeDroppedValuesAgain(t *testing.T) {
	os, up := alone()
	gs := &gets{step: os.step, objects: os, clients: newClients(os.step), up: up}
	cl := gs.clients.addClient(7, wire.RoleDriver)
	o := put(os, 1)
	os.giveHandle(cl, o)
	o.state = object.Freed
	gs.get(cl, o.id, false)
	if len(up.remade) != 1 || up.remade[0] != o {
		t.Errorf("made again: %v", up.remade)
	}
	if fetch, waits := o.takeGet(); !waits || fetch {
		t.Error("the get does not wait for it")
	}
}

// Options stand in the log once, and each submission names them by their number.
func TestJournalNumbersOptions(t *testing.T) {
	j := newJournal(&step{cfg: Config{}.withDefaults()})
	a, same, b := &wire.TaskOptions{Func: "a"}, &wire.TaskOptions{Func: "a"}, &wire.TaskOptions{Func: "b"}
	na, ns, nb := j.optionsNo(a), j.optionsNo(same), j.optionsNo(b)
	if na == 0 || na != ns || nb == na {
		t.Errorf("numbers %d, %d and %d, want the first two the same", na, ns, nb)
	}
	if len(j.logs) != 2 {
		t.Errorf("%d records, want 2", len(j.logs))
	}
	if n := j.optionsNo(&wire.TaskOptions{Func: "actor", ActorName: "unique"}); n != 0 {
		t.Errorf("the options of a named actor, which are used once, have number %d", n)
	}
}
