package sched

import (
	"testing"

	"mobula/wire"
)

// Tasks that wait in a get lend their CPU, and actors may take it for life. The actors keep it until those very
// tasks release them, so the tasks go on without it.
func TestATaskGoesOnThoughAnActorHasItsCPUForLife(t *testing.T) {
	w := newWorld(t, res(CPU, 2000)...)
	task, whole := w.task(1, 1), w.define(key(1, 2), wire.TaskActorCreate, res(CPU, 1000))
	w.submit(task, 2)
	tasks := w.of(task)
	for _, id := range tasks {
		w.run(id)
	}
	for _, id := range tasks {
		w.block(id)
	}
	for i := range 2 {
		w.submit(whole, 1)
		id := w.of(whole)[i]
		w.run(id)
		w.leases[id].up, w.leases[id].busy = true, false
		w.step(ActorUp{Lease: id})
	}
	w.unblock(tasks[0])
	if w.leases[tasks[0]].blocked {
		t.Fatal("the task waits for a CPU that only its own end makes free")
	}
	w.unblock(tasks[1])
	if !w.leases[tasks[1]].blocked {
		t.Fatal("two tasks run without a CPU of their own")
	}
	w.finish(tasks[0])
	if w.giveBack(tasks[0]); w.leases[tasks[1]].blocked {
		t.Fatal("the second task does not go on after the first")
	}
	w.finish(tasks[1])
	w.giveBack(tasks[1])
	if n := w.c.res.free[resCPU]; n != 0 {
		t.Errorf("%d thousandths of a CPU are free beside two actors that have one each", n)
	}
}
