package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
)

func TestFusedObjectsAreReadBackByOffset(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(c *Config) { c.Dir, c.MinFileBytes = dir, 100<<20 })
	all := items(1000, 100_000)
	locs := mustWrite(t, s, all)
	if files := spillFiles(t, dir); len(files) != 1 {
		t.Errorf("1000 objects of 100 kB lie in %d files, want them fused in 1", len(files))
	}
	for _, i := range []int{999, 0, 500, 1} {
		mustRead(t, s, locs[i], all[i].Data)
	}
	testkit.Eventually(t, "nothing is under way", func() bool { return s.Stats().Moving == 0 }) // counted after done was called
	st := s.Stats()
	if st.BytesWritten != 1000*100_000 || st.ObjectsWritten != 1000 || st.BytesRead != 4*100_000 || st.LiveObjects != 1000 {
		t.Errorf("stats: %+v", st)
	}
	s.Remove(locs[:999])
	mustRead(t, s, locs[999], all[999].Data)
	s.Remove(locs[999:])
	testkit.Eventually(t, "the file is deleted with its last object", func() bool { return len(spillFiles(t, dir)) == 0 })
}

func TestMaxFusedBoundsAFile(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(c *Config) { c.Dir, c.MaxFused, c.MinFileBytes = dir, 100, 1<<30 })
	mustWrite(t, s, items(250, 10))
	if n := len(spillFiles(t, dir)); n != 3 {
		t.Errorf("250 objects, at most 100 in a file, lie in %d files", n)
	}
}

func TestBytesAreBalancedOverDirectories(t *testing.T) {
	a, b := diskDir(t), diskDir(t)
	s := open(t, func(c *Config) { c.URLs = []string{a, "file://" + b} })
	for i := range 5 { // several writes at once, of files of unequal size
		var wait []<-chan written
		for k := range 4 {
			wait = append(wait, writeLater(s, items(3+k, (i+1)*300_000)))
		}
		for _, w := range wait {
			if r := testkit.Receive(t, "write", w); r.err != nil {
				t.Fatal(r.err)
			}
		}
	}
	var bytes [2]float64
	for i, dir := range []string{a, b} {
		for _, f := range spillFiles(t, dir) {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			bytes[i] += float64(info.Size())
		}
	}
	if mean := (bytes[0] + bytes[1]) / 2; bytes[0] < 0.8*mean || bytes[0] > 1.2*mean {
		t.Errorf("two directories hold %.0f and %.0f bytes, want them within 20 %%", bytes[0], bytes[1])
	}
}

// The restore that a spill waits for must not wait for that spill.
func TestPoolOfOneReadsWhileItWrites(t *testing.T) {
	gate := newGate(t)
	s := open(t, func(c *Config) { c.URLs, c.Writers, c.Readers = []string{gate.url}, 1, 1 })
	first := items(1, 500_000)
	locs := mustWrite(t, s, first)
	gate.hold(opPut)
	stuck := writeLater(s, items(1, 1000))
	queued := writeLater(s, items(1, 1000))
	gate.reached(t, opPut)
	mustRead(t, s, locs[0], first[0].Data) // while the only writer is busy
	s.Remove(mustWriteAfter(t, gate, stuck))
	if r := testkit.Receive(t, "queued write", queued); r.err != nil {
		t.Fatal(r.err)
	}
	gate.hold(opRead)
	slow := readLater(s, locs[0], make([]byte, 500_000))
	gate.reached(t, opRead)
	mustWrite(t, s, items(1, 1000)) // while the only reader is busy
	gate.open(opRead)
	if err := testkit.Receive(t, "read", slow); err != nil {
		t.Fatal(err)
	}
}

func mustWriteAfter(t *testing.T, g *gate, w <-chan written) []spill.Location {
	t.Helper()
	g.open(opPut)
	r := testkit.Receive(t, "write", w)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.locs
}

func TestAFileIsKeptWhileItIsRead(t *testing.T) {
	gate := newGate(t)
	s := open(t, func(c *Config) { c.URLs = []string{gate.url} })
	all := items(1, 1000)
	locs := mustWrite(t, s, all)
	gate.hold(opRead)
	dst := make([]byte, 1000)
	slow := readLater(s, locs[0], dst)
	gate.reached(t, opRead)
	s.Remove(locs)
	s.Remove(locs) // a second time: nothing
	if n := s.Stats(); n.LiveObjects != 0 || n.FilesDeleted != 0 {
		t.Errorf("after Remove under a read: %+v", n)
	}
	gate.open(opRead)
	if err := testkit.Receive(t, "read", slow); err != nil {
		t.Errorf("the file went away under a read: %v", err)
	}
	testkit.Eventually(t, "the file is deleted after the read", func() bool { return s.Stats().FilesDeleted == 1 })
}

func TestDamagedFilesAreTypedErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(path string) error
		want   error
		stat   func(Stats) uint64
	}{
		{"byte flipped", func(path string) error {
			p, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			p[len(p)/2] ^= 1
			return os.WriteFile(path, p, 0o600)
		}, spill.ErrCorrupt, func(s Stats) uint64 { return s.Corrupt }},
		{"truncated", func(path string) error { return os.Truncate(path, 300_000) }, spill.ErrCorrupt, func(s Stats) uint64 { return s.Corrupt }},
		{"deleted", os.Remove, spill.ErrMissing, func(s Stats) uint64 { return s.Missing }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := diskDir(t)
			s := open(t, func(c *Config) { c.Dir = dir })
			locs := mustWrite(t, s, items(1, 1_000_000))
			if err := c.damage(spillFiles(t, dir)[0]); err != nil {
				t.Fatal(err)
			}
			err := testkit.Receive(t, "read", readLater(s, locs[0], make([]byte, 1_000_000)))
			if !errors.Is(err, c.want) || c.stat(s.Stats()) != 1 {
				t.Errorf("got %v, %+v; want %v, counted", err, s.Stats(), c.want)
			}
		})
	}
}

// Of reads that are done as one, only the damaged object's fails.
func TestDamageOfOneObjectSparesItsNeighbours(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(c *Config) { c.Dir, c.Readers = dir, 1 })
	all := items(40, 20_000)
	locs := mustWrite(t, s, all)
	f, err := os.OpenFile(spillFiles(t, dir)[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{^all[20].Data[7]}, int64(locs[20].Off)+7); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(format.Align(locs[39].Off, format.Page)) + 10); err != nil {
		t.Fatal(err)
	}
	var reads []<-chan error
	dst := make([][]byte, len(locs))
	for i, l := range locs {
		dst[i] = make([]byte, l.Size)
		reads = append(reads, readLater(s, l, dst[i]))
	}
	for i, r := range reads {
		err := testkit.Receive(t, "read", r)
		if bad := i == 20 || i == 39; bad != errors.Is(err, spill.ErrCorrupt) || (!bad && string(dst[i]) != string(all[i].Data)) {
			t.Errorf("object %d: %v", i, err)
		}
	}
}

func TestReadRefusesWhatCannotBe(t *testing.T) {
	s := open(t, nil)
	locs := mustWrite(t, s, items(1, 100))
	other := locs[0]
	other.Target = 7
	if err := testkit.Receive(t, "read", readLater(s, other, make([]byte, 100))); !errors.Is(err, spill.ErrNoTarget) || !errors.Is(err, spill.ErrMissing) {
		t.Errorf("read from a target that is not configured: %v", err)
	}
	if err := testkit.Receive(t, "read", readLater(s, locs[0], make([]byte, 99))); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("read into too little memory: %v", err)
	}
}

func TestEmptyWritesAndEmptyObjects(t *testing.T) {
	s := open(t, nil)
	if locs := mustWrite(t, s, nil); len(locs) != 0 {
		t.Errorf("no items: %v", locs)
	}
	locs := mustWrite(t, s, items(3, 0))
	for _, l := range locs {
		mustRead(t, s, l, nil)
		s.Remove([]spill.Location{l})
	}
	testkit.Eventually(t, "the file of empty objects is deleted", func() bool { return s.Stats().FilesDeleted == 1 })
}

func TestCloseAnswersEverythingAndDeletes(t *testing.T) {
	dir := diskDir(t)
	gate := newGate(t)
	s := open(t, func(c *Config) { c.URLs, c.Writers, c.Readers = []string{gate.url, dir}, 1, 1 })
	var waits []<-chan written
	gate.hold(opPut)
	for range 6 {
		waits = append(waits, writeLater(s, items(1, 2<<20)))
	}
	gate.reached(t, opPut)
	closed := make(chan struct{})
	go func() { shut(t, s); close(closed) }()
	testkit.Eventually(t, "Close has begun", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.closed && s.stopping > 0 })
	gate.open(opPut)
	testkit.Receive(t, "close", closed)
	for i, w := range waits {
		if r := testkit.Receive(t, "write", w); r.err != nil && !errors.Is(r.err, errs.ErrShutdown) {
			t.Errorf("write %d: %v", i, r.err)
		}
	}
	if err := testkit.Receive(t, "write", writeLater(s, items(1, 1))).err; !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("write after close: %v", err)
	}
	if err := testkit.Receive(t, "read", readLater(s, spill.Location{}, nil)); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("read after close: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("after close the directory holds %v, %v", left, err)
	}
}

func TestOpenUndoesWhatItDidWhenATargetFails(t *testing.T) {
	dir := diskDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := diskDir(t)
	cfg := Default("test")
	cfg.URLs = []string{good, file}
	if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("open with a file for a directory: %v", err)
	}
	cfg.URLs = cfg.URLs[:1]
	s, err := Open(cfg) // the lock is free
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)
}

// A spiller that was opened and not started leaves what an earlier node of the session has spilled.
func TestASpillerThatNeverBeganDeletesNothing(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(cfg *Config) { cfg.Dir, cfg.Restarts, cfg.Keep = dir, true, true })
	all := items(1, 700_000)
	locs := mustWrite(t, s, all)
	shut(t, s)
	cfg := Default("test")
	cfg.Dir = dir
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	s = open(t, func(cfg *Config) { cfg.Dir = dir })
	s.Recover(locs)
	mustRead(t, s, locs[0], all[0].Data)
}

func TestValidateReportsEverything(t *testing.T) {
	cfg := Config{Session: "../x", URLs: []string{"relative", "gopher://x", "/a", "file:///a/"}, Config: spill.Config{CapacityThreshold: 2}}
	err := cfg.Validate()
	for _, want := range []string{"Session", "relative", "gopher", "named twice", "Writers", "Readers", "MaxFused", "MinFileBytes", "CapacityThreshold", "CapacityInterval", "ProbeAfter", "IOTimeout", "LogEvery"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error:\n%v", want, err)
		}
	}
	if err := Default("node-1").Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	if _, err := Open(cfg); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("open: %v", err)
	}
}

func TestMappedFiles(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(c *Config) { c.Dir = dir })
	f, path, err := s.Fallback(1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if st := s.Stats(); st.MappedFiles != 1 || st.MappedBytes != 1<<20 || st.Fallbacks != 1 {
		t.Errorf("stats: %+v", st)
	}
	s.Release(path)
	s.Release(path)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a released file: %v", err)
	}
	if st := s.Stats(); st.MappedFiles != 0 || st.MappedBytes != 0 {
		t.Errorf("stats after release: %+v", st)
	}
	if _, _, err := s.Fallback(1<<60, false); !errors.Is(err, errs.ErrOutOfDisk) {
		t.Errorf("a mapped file larger than any disk: %v", err)
	}
}

func TestTargetsKeepApart(t *testing.T) {
	var urls []string
	for range 3 {
		urls = append(urls, diskDir(t))
	}
	s := open(t, func(c *Config) { c.URLs = urls })
	all := items(30, 200_000)
	locs := mustWrite(t, s, all)
	seen := map[uint16]bool{}
	for i, l := range locs {
		seen[l.Target] = true
		mustRead(t, s, l, all[i].Data)
	}
	if len(seen) != 3 {
		t.Errorf("one write of 6 files went to targets %v, want all 3", fmt.Sprint(seen))
	}
}
