package floor

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

func TestMain(m *testing.M) {
	Child()
	goleak.VerifyTestMain(m)
}

// valid checks that there are n samples and each is a positive number.
func valid(t *testing.T, samples []float64, err error, n int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != n {
		t.Fatalf("%d samples, want %d", len(samples), n)
	}
	for _, s := range samples {
		if !(s > 0) || math.IsInf(s, 0) {
			t.Fatalf("sample %v", s)
		}
	}
}

func TestQuantile(t *testing.T) {
	s := []float64{4, 1, 3, 2, 5}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 1: 5, 0.25: 2, 0.125: 1.5, -1: 1, 2: 5} {
		if got := Quantile(s, q); got != want {
			t.Errorf("quantile %g is %g, want %g", q, got, want)
		}
	}
	if !slices.Equal(s, []float64{4, 1, 3, 2, 5}) {
		t.Error("samples were reordered")
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("a quantile of nothing")
	}
}

func TestShareCoversEverything(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40).Draw(t, "n")
		unit := rapid.SampledFrom([]int64{1, 8, 4096}).Draw(t, "unit")
		parts := rapid.IntRange(1, 9).Draw(t, "parts")
		end := int64(0)
		for p := range parts {
			from, to := share(n, unit, p, parts)
			if from != end || to < from || from%unit != 0 {
				t.Fatalf("part %d is [%d,%d) after %d", p, from, to, end)
			}
			end = to
		}
		if end != n {
			t.Fatalf("parts end at %d of %d", end, n)
		}
	})
}

func TestPingPong(t *testing.T) {
	for _, bytes := range []int{1, 256, 100_000} {
		s, err := PingPong(context.Background(), Messages{Bytes: bytes, Rounds: 50, Warmup: 5})
		valid(t, s, err, 50)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := PingPong(ctx, Messages{Rounds: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Over loopback, where the kernel does what it does between hosts.
func TestPeer(t *testing.T) {
	p, err := StartPeer(t.Context(), "127.0.0.1", (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if name, err := p.Cipher(t.Context()); err != nil || !strings.HasPrefix(name, "TLS_") {
		t.Errorf("cipher %q, %v", name, err)
	}
	for _, bytes := range []int{1, 256, 100_000} {
		s, err := p.PingPong(t.Context(), Messages{Bytes: bytes, Rounds: 50, Warmup: 5})
		valid(t, s, err, 50)
	}
	for _, cold := range []bool{false, true} {
		s, err := p.Stream(t.Context(), Memory{Bytes: 3<<20 + 7, Repeats: 3}, cold)
		valid(t, s, err, 3)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Stream(ctx, Memory{Bytes: 1 << 20}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A peer that cannot listen says so.
func TestAPeerThatCannotListen(t *testing.T) {
	if p, err := StartPeer(t.Context(), "192.0.2.1", (*exec.Cmd).Start); err == nil {
		t.Errorf("a peer at an address of nobody: %v", p.Close())
	}
}

func TestMemory(t *testing.T) {
	for _, threads := range []int{1, 2} {
		m := Memory{Bytes: 1<<20 + 64, Threads: threads, Repeats: 2}
		s, err := Memcpy(context.Background(), m)
		valid(t, s, err, 2)
		v, sum, err := SumShares([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, threads, 2)
		valid(t, []float64{v}, err, 1)
		if sum != 66 {
			t.Errorf("%d threads: the sum is %g, want 66", threads, sum)
		}
		for _, reserve := range []bool{false, true} {
			s, err = FirstTouch(context.Background(), m, reserve)
			valid(t, s, err, 2)
		}
	}
}

func TestSumFloat64(t *testing.T) {
	for n := range 40 {
		v := make([]float64, n)
		want := 0.0
		for i := range v {
			v[i] = float64(i * i)
			want += v[i]
		}
		if got := SumFloat64(v); got != want {
			t.Errorf("sum of %d values is %g, want %g", n, got, want)
		}
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []Disk{
		{Bytes: 5 << 20, FileBytes: 2 << 20},
		{Bytes: 5 << 20, FileBytes: 2 << 20, Cold: true},
		{Bytes: 5 << 20, FileBytes: 2 << 20, Direct: true},
		{Bytes: 3<<20 + 7, FileBytes: 1<<20 + 1, Drop: true, Chunk: 1000, Threads: 2},
	} {
		d.Dir, d.Repeats = dir, 2
		s, err := DiskWrite(context.Background(), d)
		valid(t, s, err, 2)
		s, err = DiskRead(context.Background(), d)
		valid(t, s, err, 2)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDiskFilesHaveTheSizesAskedFor(t *testing.T) {
	r := &diskRun{Disk: Disk{Bytes: 2500, FileBytes: 1000, Chunk: 300, Threads: 2}, dir: t.TempDir()}
	r.bufs = [][]byte{make([]byte, 300), make([]byte, 300)}
	if _, err := r.write(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1000, 1000, 500} {
		if info, err := os.Stat(r.path(i)); err != nil || info.Size() != want {
			t.Errorf("file %d: %v, %v; want %d bytes", i, info, err, want)
		}
	}
	if r.files() != 3 {
		t.Errorf("%d files", r.files())
	}
}

func TestEvictEmptiesThePageCache(t *testing.T) {
	dir, err := os.MkdirTemp(".", "testdata-") // the system's temporary directory may be memory
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	testkit.Eventually(t, "EAGAIN of a read without I/O after Evict", func() bool { // a page that the kernel looks at just then stays
		if err := Evict(path); err != nil {
			t.Fatal(err)
		}
		// RWF_NOWAIT reads only what is cached.
		_, err := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 4096)}, 0, unix.RWF_NOWAIT)
		return errors.Is(err, unix.EAGAIN)
	})
	if err := Evict(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func TestParametersAreChecked(t *testing.T) {
	ctx := context.Background()
	for name, f := range map[string]func() error{
		"memcpy":  func() error { _, err := Memcpy(ctx, Memory{Bytes: -1}); return err },
		"sum":     func() error { _, _, err := SumShares(nil, 0, 1); return err },
		"touch":   func() error { _, err := FirstTouch(ctx, Memory{Threads: -1}, false); return err },
		"ping":    func() error { _, err := PingPong(ctx, Messages{Bytes: maxMessage + 1}); return err },
		"bytes":   func() error { _, err := (&Peer{}).Stream(ctx, Memory{Bytes: -1}, false); return err },
		"rounds":  func() error { _, err := (&Peer{}).PingPong(ctx, Messages{Rounds: -1}); return err },
		"write":   func() error { _, err := DiskWrite(ctx, Disk{FileBytes: 1}); return err },
		"read":    func() error { _, err := DiskRead(ctx, Disk{Bytes: 5000, FileBytes: 5000, Direct: true}); return err },
		"sort":    func() error { _, err := Sort(ctx, Sorting{}); return err },
		"missing": func() error { _, err := DiskWrite(ctx, Disk{Dir: "/absent", Bytes: 1, FileBytes: 1}); return err },
	} {
		if f() == nil {
			t.Errorf("%s: a bad parameter was taken", name)
		}
	}
}

func TestSorterSorts(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		src := make([]byte, n*RecordBytes)
		Generate(src, rapid.Int64Range(0, 1<<40).Draw(t, "first"))
		if rapid.Bool().Draw(t, "few keys") { // equal keys and prefixes
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for i := range n {
				clear(src[i*RecordBytes : i*RecordBytes+KeyBytes])
				src[i*RecordBytes+r.IntN(KeyBytes)] = byte(r.IntN(3))
			}
		}
		want := make([][]byte, n)
		for i := range want {
			want[i] = src[i*RecordBytes : (i+1)*RecordBytes]
		}
		slices.SortStableFunc(want, func(a, b []byte) int { return bytes.Compare(a[:KeyBytes], b[:KeyBytes]) })
		dst := make([]byte, len(src))
		new(Sorter).Sort(dst, src)
		seen := map[uint64]int{}
		for i := range want {
			r := dst[i*RecordBytes : (i+1)*RecordBytes]
			if !bytes.Equal(r[:KeyBytes], want[i][:KeyBytes]) {
				t.Fatalf("record %d of %d has key %x, want %x", i, n, r[:KeyBytes], want[i][:KeyBytes])
			}
			seen[number(r)]++
		}
		if len(seen) != n {
			t.Fatalf("%d records went in, %d came out", n, len(seen))
		}
	})
}

func number(r []byte) (n uint64) {
	for _, b := range r[10:18] {
		n = n<<8 | uint64(b)
	}
	return n
}

func TestSort(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []Sorting{
		{Records: 1},
		{Records: 100_000, Memory: 1 << 20},
		{Records: 100_000, Memory: 1 << 20, Direct: true, Output: true},
		{Records: 5000, Memory: 100_000, Threads: 3, Output: true, Repeats: 2},
	} {
		s.Dir = dir
		samples, err := Sort(context.Background(), s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		if len(samples) != max(s.Repeats, 1) {
			t.Fatalf("%d samples", len(samples))
		}
		for _, x := range samples {
			want := s.Records * RecordBytes
			if s.Output {
				want *= 2
			}
			if x.Written < want || x.Read < s.Records*RecordBytes || !(x.Total > 0) {
				t.Errorf("%+v: sample %+v, want at least %d bytes written", s, x, want)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The merge itself notices a run that is not sorted, and a record that is lost.
func TestSortChecksItself(t *testing.T) {
	w := &sorting{Sorting: Sorting{Records: 3, Threads: 1}, dir: t.TempDir(), perRun: 3, runs: 1, parts: 1}
	run := make([]byte, sortBlock)
	Generate(run[:3*RecordBytes], 0)
	new(Sorter).Sort(run[:3*RecordBytes], bytes.Clone(run[:3*RecordBytes]))
	w.bounds = [][]int64{w.cut(run[:3*RecordBytes])}
	run[0], run[RecordBytes] = 0xff, 0
	if err := w.save("run-0", run); err != nil {
		t.Fatal(err)
	}
	if _, err := w.mergePart(0, make([]byte, w.partBytes(0)), make([]byte, sortChunk+sortBlock)); err == nil {
		t.Error("a run out of order was merged without an error")
	}
}
