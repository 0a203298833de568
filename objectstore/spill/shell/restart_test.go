package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage/storagetest"
)

// Panics of the target's actor at every kind of message: each request is still answered once,
// and rightly.
func TestEveryAnswerComesThroughPanics(t *testing.T) {
	for _, message := range []string{"Submit", "Finished", "Probed"} {
		for nth := range 6 {
			for _, times := range []int{1, 2} { // at 2 the message itself is dropped
				t.Run(fmt.Sprintf("%s-%d-%d", message, nth+1, times), func(t *testing.T) {
					sys := actors.NewSystem(actors.Config{})
					defer func() {
						if err := sys.StopTree(context.Background()); err != nil {
							t.Error(err)
						}
					}()
					s := openIn(t, sys, func(c *Config) { c.Writers, c.Readers = 1, 1 })
					defer shut(t, s)
					sys.Faults.Inject(actors.Fault{Kind: "spiller", MessageType: message, Nth: nth + 1, Times: times, Action: actors.PanicMidStep})
					all := items(6, 700_000)
					var writes []<-chan written
					for i := range all {
						writes = append(writes, writeLater(s, all[i:i+1]))
					}
					var locs []spill.Location
					for i, w := range writes {
						r := testkit.Receive(t, "write", w)
						if r.err != nil {
							t.Fatalf("write %d: %v", i, r.err)
						}
						locs = append(locs, r.locs...)
					}
					var reads []<-chan error
					dst := make([][]byte, len(locs))
					for i, l := range locs {
						dst[i] = storagetest.Pages(int(l.Size))
						reads = append(reads, readLater(s, l, dst[i]))
					}
					for i, r := range reads {
						if err := testkit.Receive(t, "read", r); err != nil || string(dst[i]) != string(all[i].Data) {
							t.Errorf("read %d: %v", i, err)
						}
					}
					s.Remove(locs)
					testkit.Eventually(t, "all files are deleted", func() bool { return s.Stats().FilesDeleted >= 6 })
					for _, w := range writes {
						if len(w) != 0 {
							t.Error("a write was answered twice")
						}
					}
				})
			}
		}
	}
}

func TestRecoverKeepsWhatIsLiveAndDeletesTheRest(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(c *Config) { c.Dir = dir })
	all := items(10, 600_000) // five files of two
	locs := mustWrite(t, s, all)
	_, path, err := s.Fallback(4096, false)
	if err != nil {
		t.Fatal(err)
	}
	live := []spill.Location{locs[0], locs[5]}
	s.Recover(live)
	testkit.Eventually(t, "files without a live object are deleted", func() bool { return len(spillFiles(t, dir)) == 2 })
	mustRead(t, s, locs[0], all[0].Data)
	mustRead(t, s, locs[5], all[5].Data)
	if st := s.Stats(); st.LiveObjects != 2 || st.LiveFiles != 2 || st.Orphans != 3 {
		t.Errorf("stats: %+v", st)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a mapped file of this process: %v", err)
	}
	s.Remove(live)
	testkit.Eventually(t, "the last files are deleted", func() bool { return len(spillFiles(t, dir)) == 0 })
	mustRead(t, s, mustWrite(t, s, all[:1])[0], all[0].Data) // it goes on
}

// After Recover no earlier request touches memory, and no earlier answer counts.
func TestRecoverAnswersWhatWasUnderWay(t *testing.T) {
	g := newGate(t)
	s := open(t, func(c *Config) { c.URLs, c.Writers, c.Readers = []string{g.url}, 1, 1 })
	locs := mustWrite(t, s, items(1, 1000))
	g.hold(opPut)
	g.hold(opRead)
	writing, waiting := writeLater(s, items(1, 10)), writeLater(s, items(1, 10))
	dst := make([]byte, 1000)
	reading, readWaits := readLater(s, locs[0], dst), readLater(s, locs[0], make([]byte, 1000))
	g.reached(t, opPut)
	g.reached(t, opRead)
	done := make(chan struct{})
	go func() { s.Recover(locs); close(done) }()
	if r := testkit.Receive(t, "queued write", waiting); !errors.Is(r.err, errs.ErrCancelled) {
		t.Errorf("queued write: %v", r.err)
	}
	if err := testkit.Receive(t, "queued read", readWaits); !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("queued read: %v", err)
	}
	if r := testkit.Receive(t, "write during Recover", writeLater(s, items(1, 10))); !errors.Is(r.err, errs.ErrCancelled) {
		t.Errorf("write during Recover: %v; its file would be taken for an orphan", r.err)
	}
	if err := testkit.Receive(t, "read during Recover", readLater(s, locs[0], make([]byte, 1000))); !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("read during Recover: %v", err)
	}
	select {
	case <-done:
		t.Error("Recover returned while I/O was in flight")
	default:
	}
	g.open(opRead)
	g.open(opPut)
	testkit.Receive(t, "recover", done)
	if len(reading) != 1 {
		t.Error("Recover returned before the read in flight was answered")
	}
	if r := testkit.Receive(t, "write in flight", writing); !errors.Is(r.err, errs.ErrCancelled) {
		t.Errorf("write in flight: %v, %v; its file is an orphan", r.locs, r.err)
	}
	testkit.Eventually(t, "only the live file is left", func() bool {
		files, err := g.List(context.Background())
		return err == nil && len(files) == 1
	})
}

func TestAKilledProcessIsRecovered(t *testing.T) {
	dir := diskDir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=kill", "DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("the process did not come up: %v", err)
	}
	var left struct {
		Locs   []spill.Location
		Mapped []string
	}
	if err := json.Unmarshal(line, &left); err != nil {
		t.Fatal(err)
	}
	s := open(t, func(c *Config) { c.Dir = dir })
	f, size, err := s.Reopen(left.Mapped[0])
	if err != nil || size != 8192 {
		t.Fatalf("reopen: %d bytes, %v", size, err)
	}
	defer f.Close()
	s.Recover(left.Locs[:1])
	all := items(4, 600_000)
	mustRead(t, s, left.Locs[0], all[0].Data)
	testkit.Eventually(t, "the orphan is deleted", func() bool { return len(spillFiles(t, dir)) == 1 })
	for i, want := range []bool{true, false} {
		if _, err := os.Stat(left.Mapped[i]); (err == nil) != want {
			t.Errorf("mapped file %d: %v, kept should be %v", i, err, want)
		}
	}
	more := mustWrite(t, s, all)
	for _, l := range more {
		if l.File == left.Locs[0].File {
			t.Errorf("file number %d is used again", l.File)
		}
	}
	if _, _, err := s.Reopen(filepath.Join(dir, "absent")); !errors.Is(err, spill.ErrMissing) {
		t.Errorf("reopen of what is not there: %v", err)
	}
}

// killed spills objects, prints which, and waits to be killed.
func killed(dir string) error {
	cfg := Default("test")
	cfg.Dir, cfg.MinFileBytes, cfg.Restarts = dir, 1<<20, true
	s, err := Open(cfg)
	if err == nil {
		err = s.Start(nil)
	}
	if err != nil {
		return err
	}
	var left struct {
		Locs   []spill.Location
		Mapped []string
	}
	for range 2 {
		_, path, err := s.Fallback(8192, false)
		if err != nil {
			return err
		}
		left.Mapped = append(left.Mapped, path)
	}
	r := <-writeLater(s, items(4, 600_000))
	if r.err != nil {
		return r.err
	}
	left.Locs = r.locs
	line, err := json.Marshal(left)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	select {}
}

func TestATargetWhoseActorStoppedForGood(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer func() {
		if err := sys.StopTree(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	g := newGate(t)
	s := openIn(t, sys, func(c *Config) { c.URLs, c.Writers = []string{g.url, diskDir(t)}, 1 })
	defer shut(t, s)
	all := items(1, 1000)
	var held []spill.Location
	for len(held) == 0 || held[0].Target != 0 {
		held = mustWrite(t, s, all)
	}
	g.hold(opProbe) // writes wait in target 0's core
	var waits []<-chan written
	for range 4 {
		waits = append(waits, writeLater(s, all))
	}
	if err := s.targets[0].ref.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	g.open(opProbe)
	for _, w := range waits {
		if r := testkit.Receive(t, "write", w); r.err != nil || len(r.locs) != 1 {
			t.Errorf("write: %v, %v", r.locs, r.err)
		}
	}
	if err := testkit.Receive(t, "read", readLater(s, held[0], make([]byte, 1000))); !errors.Is(err, errs.ErrShutdown) && !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("read from a target without an actor: %v", err)
	}
}
