package api

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/mobulatest"
)

func TestC16AWorkerThatCannotStart(t *testing.T) {
	_, ctx := harness.StartNode(t, t.Context(), node.Config{CPUs: 1, StoreBytes: 16 << 20, Processes: true, Executable: "/bin/false"})
	_, err := e2eAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx)
	if !errors.Is(err, mobula.ErrRuntimeSetup) || !strings.Contains(err.Error(), "status 1") {
		t.Errorf("a program that ends at once: %v", err)
	}
	_, ctx = harness.StartNode(t, t.Context(), node.Config{CPUs: 1, StoreBytes: 16 << 20, Processes: true, Executable: "/no/such/program"})
	_, err = e2eAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx)
	if !errors.Is(err, mobula.ErrRuntimeSetup) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
}

var e2eTwice = mobula.Register1("e2e/twice", func(_ context.Context, b []byte) ([]byte, error) { return append(b[:len(b):len(b)], b...), nil })

// What a spill file held and cannot give back is made again with what it needs, however
// far back; what may not run again says why it is lost.
func TestO15LostResultsAreMadeAgain(t *testing.T) {
	spill := t.TempDir()
	c := mobulatest.Start(t, mobula.WithStore(32<<20), mobula.WithCPUs(1), mobula.WithSpill(spill))
	ctx := c.Context(t.Context())
	var twice, once, put mobula.Ref[[]byte]
	{
		base := e2eBig.Go(ctx, mobula.V(3<<20))
		middle := e2eTwice.Go(ctx, base)
		twice = e2eTwice.Go(ctx, middle)
		once = e2eBig.Go(ctx, mobula.V(5<<20), mobula.Retries(0))
		if _, _, err := mobula.Wait(ctx, []mobula.Ref[[]byte]{twice, once}, 2); err != nil {
			t.Fatal(err)
		}
		base.Release() // only lineage knows them now
		middle.Release()
	}
	put, err := mobula.Put(ctx, make([]byte, 5<<20))
	if err != nil {
		t.Fatal(err)
	}
	filler, err := mobula.Create[byte](ctx, 30<<20) // everything else goes to disk
	if err != nil {
		t.Fatal(err)
	}
	filler.Abort()
	damaged := 0
	if err := filepath.WalkDir(spill, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil && info.Size() >= 1<<20 {
				err = os.Truncate(path, 100)
				damaged++
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its last object was freed meanwhile
		}
		return err
	}); err != nil || damaged == 0 {
		t.Fatalf("%d files were damaged, %v", damaged, err)
	}
	get(ctx, t, e2eLen.Go(ctx, twice), 12<<20)
	if _, err := once.Get(ctx); !errors.Is(err, mobula.ErrReconstructionFailed) || !errors.Is(err, mobula.ErrObjectLost) {
		t.Errorf("a result that may not be made twice: %v", err)
	}
	if _, err := put.Get(ctx); !errors.Is(err, mobula.ErrObjectLost) || errors.Is(err, mobula.ErrReconstructionFailed) {
		t.Errorf("a put: %v", err)
	}
	if _, err := e2eLen.Go(ctx, once).Get(ctx); !errors.Is(err, mobula.ErrObjectLost) {
		t.Errorf("a task that needs it: %v", err)
	}
}

func TestNodesAreFoundOrSaidNotToBe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	if _, err := mobula.Connect(t.Context(), filepath.Join(dir, "node.sock")); !errors.Is(err, mobula.ErrNoNode) || !strings.Contains(err.Error(), dir) {
		t.Errorf("nobody is there: %v", err)
	}
	c := mobulatest.Start(t)
	own := filepath.Dir(c.Address())
	if _, err := mobula.Start(t.Context(), mobula.WithDir(own), mobula.WithStore(16<<20)); !errors.Is(err, mobula.ErrNodeRunning) || !strings.Contains(err.Error(), own) {
		t.Errorf("its directory is in use: %v", err)
	}
	ctx := c.Context(t.Context())
	get(ctx, t, e2eAdd.Go(ctx, mobula.V(1.0), mobula.V(2.0)), 3) // it is none the worse
}

// A program whose main does not serve as a worker is told so, and starts no further programs.
func TestAWorkerThatBecomesNone(t *testing.T) {
	t.Setenv("MOBULA_WORKER_SOCKET", "/tmp/none")
	_, started := mobula.Start(t.Context())
	_, joined := mobula.Connect(t.Context(), "")
	for _, err := range []error{started, joined} {
		if !errors.Is(err, mobula.ErrRuntimeSetup) || !strings.Contains(err.Error(), "mobula.WorkerMain()") {
			t.Errorf("got %v", err)
		}
	}
}
