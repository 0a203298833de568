package disk

import (
	"bytes"
	"context"
	"os"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
	"mobula/graph/spec"
	"mobula/internal/memstat"
	"mobula/internal/node"
)

// ownHeap is what this process takes, as the memory monitor counts it.
func ownHeap(t *testing.T) uint64 {
	t.Helper()
	debug.FreeOSMemory()
	own, err := (&memstat.Sampler{FS: os.DirFS("/")}).Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// When the processes' heaps grow towards the node's memory limit, the store gives memory back, and takes it again
// when they have shrunk. What it keeps is there all the time.
func TestStoreGivesWayToHeaps(t *testing.T) {
	const mib = 1 << 20
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 128 * mib, MemoryLimit: ownHeap(t) + 512*mib, SpillURLs: []string{harness.TempDir(t)}})
	var refs []mobula.Ref[[]byte]
	for i := range 100 {
		b := make([]byte, mib)
		b[7] = byte(i)
		r, err := mobula.Put(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	backed := func() uint64 {
		s, err := n.StoreStats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Backed
	}
	if b := backed(); b < 90*mib {
		t.Fatalf("%d bytes are backed, of 100 MiB that were put and need not go", b)
	}
	heap, err := unix.Mmap(-1, 0, 512*mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON) // of no allocator or detector that would keep it
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	harness.Eventually(t, ctx, "the store has given way", func() bool { return backed() < 8*mib })
	for i, r := range refs {
		if b, err := r.Get(ctx); err != nil || b[7] != byte(i) {
			t.Fatalf("object %d: %v", i, err)
		}
	}
	if err := unix.Munmap(heap); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, ctx, "the store takes memory again", func() bool {
		for _, r := range refs {
			if _, err := r.Get(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return backed() > 60*mib
	})
}

// beside is how many e2e/beside tasks run, and the most that did at once.
var beside, mostBeside atomic.Int64

var countBeside = mobula.Register1("e2e/beside", func(_ context.Context, block []byte) ([]int, error) {
	n := beside.Add(1)
	defer beside.Add(-1)
	for {
		if m := mostBeside.Load(); n <= m || mostBeside.CompareAndSwap(m, n) {
			break
		}
	}
	return []int{bytes.Count(block, []byte{1})}, nil
})

// Where the node has a memory limit, tasks of a graph whose arguments are large run in turn, though there are slots for all.
// The arguments of two are more than there is: these grow by nothing, which the node learns when it happens to look while one runs.
func TestTasksWithLargeArgumentsRunInTurn(t *testing.T) {
	const mib, size = 1 << 20, 24
	ctx, cancel := harness.Limit(t)
	defer cancel()
	_, ctx = harness.StartNode(t, ctx, node.Config{CPUs: 4, StoreBytes: 512 * mib, MemoryLimit: ownHeap(t) + 2*size*mib, SpillURLs: []string{harness.TempDir(t)}})
	g := spec.New()
	var sums []spec.Key
	for i := range 8 {
		block := g.Task(spec.K("block", i), harness.Blocks, size, 1)
		sums = append(sums, g.Task(spec.K("beside", i), countBeside, block))
	}
	mostBeside.Store(0)
	got, err := spec.Get[int](ctx, mobula.Distributed(), g, g.Task(spec.K("whole"), harness.Totals, sums))
	if err != nil || got != 8*size*mib {
		t.Fatalf("got %d, %v", got, err)
	}
	if n := mostBeside.Load(); n != 1 {
		t.Errorf("%d of them ran at once", n)
	}
}
