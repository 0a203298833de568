package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/benchmarks/floor"
	"mobula/internal/netns"
	"mobula/internal/testkit"
)

func TestMain(m *testing.M) {
	if enter() {
		return
	}
	goleak.VerifyTestMain(m)
}

// Every case, in every mode: what it computes is checked by itself, its figures are not looked at.
func TestCases(t *testing.T) {
	dir, err := os.MkdirTemp("", "mb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := startSink("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, e := range s.tracing(func(string) string { return "" }) {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	for _, mode := range modes {
		runCases(t, &bench{params: tiny, mode: mode, runs: 1, dir: dir, sink: s})
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// runCases runs the cases of a mode.
func runCases(t *testing.T, b *bench) {
	mode := b.mode
	for i := range cases {
		c := &cases[i]
		if !c.fits(mode) {
			continue
		}
		t.Run(mode+"/"+c.name, func(t *testing.T) {
			b := *b
			b.log = t.Logf
			r := runCase(t.Context(), c, &b, 30*time.Second)
			if r.err != nil {
				t.Fatal(r.err)
			}
			if (r.skipped != "") != (mode == embedded && c.name == "get-large") {
				t.Fatalf("skipped: %q", r.skipped)
			}
			if r.skipped != "" {
				return
			}
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Case, Mode, Unit string
				Value, Min, Max  float64
				Runs             int
			}
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if got.Case != c.name || got.Mode != mode || got.Unit == "" || got.Runs < 1 || got.Min > got.Value || got.Value > got.Max {
				t.Errorf("%s", line)
			}
			if got.Unit != "%" && !(got.Value > 0) {
				t.Errorf("%s", line)
			}
		})
	}
}

// The cases of several nodes run in a process on the first host of a network. They take minutes.
func TestStressCasesOverNodes(t *testing.T) {
	if os.Getenv("MOBULA_STRESS") == "" {
		t.Skip("set MOBULA_STRESS=1: clusters of real nodes")
	}
	mobula := filepath.Join(t.TempDir(), "mobula")
	over, err := enterNetwork(os.Getenv(binaryEnv))
	if err != nil {
		t.Fatal(err)
	}
	if over == nil {
		n, err := netns.New(t.Context(), hosts)
		if errors.Is(err, netns.ErrUnable) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}()
		build := exec.Command("go", "build", "-o", mobula, "../../cmd/mobula")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), networkEnv+"="+n.String(), binaryEnv+"="+mobula)
		var out bytes.Buffer
		again.Stdout, again.Stderr = &out, &out
		if err := n.Hosts[0].Start(again); err != nil {
			t.Fatal(err)
		}
		if err := again.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
			t.Errorf("on the first host: %v\n%s", err, out.Bytes())
		}
		return
	}
	dir, err := os.MkdirTemp("", "mb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, mode := range modesOverNodes {
		runCases(t, &bench{params: tiny, mode: mode, runs: 1, dir: dir, over: over})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// binaryEnv names the executable of nodes to the process on the first host.
const binaryEnv = "MOBENCH_TEST_MOBULA"

func TestFlags(t *testing.T) {
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !strings.Contains(help.String(), c.name) {
			t.Errorf("--help says nothing of %s", c.name)
		}
	}
	if !strings.Contains(help.String(), "Examples:") {
		t.Error("--help has no examples")
	}
	o, err := parse([]string{"-mode", "process,node", "-runs", "2", "-json", "sort", "idle"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.modes, []string{process, separate}) || o.runs != 2 || !o.json || len(o.cases) != 2 || o.cases[0].name != "sort" {
		t.Errorf("%+v", o)
	}
	if o, err = parse(nil, io.Discard); err != nil || len(o.cases) != len(cases) || len(o.modes) != 3 || o.runs != 5 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-mode", "cluster"}, {"-runs", "0"}, {"no-such-case"}, {"-colour"}, {"transfer"}, {"-mode", "nodes", "sort"}} {
		if _, err := parse(bad, io.Discard); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A case that fails has a line that says so, the others run, and the whole fails.
func TestFailures(t *testing.T) {
	mk := func(name string, r *report, err error) *benchCase {
		return &benchCase{name: name, run: func(context.Context, *bench) (*report, error) { return r, err }}
	}
	late := &benchCase{name: "late", run: func(ctx context.Context, _ *bench) (*report, error) { <-ctx.Done(); return nil, ctx.Err() }}
	o := options{modes: []string{embedded}, runs: 1, json: true, quiet: true, dir: t.TempDir(), timeout: 200 * time.Millisecond, cases: []*benchCase{
		mk("broken", nil, errors.New("it broke")), late, mk("bound", &report{unit: "s", samples: []float64{2}, failed: "too slow"}, nil),
		mk("good", &report{unit: "s", samples: []float64{3, 1, 2}, floor: 4}, nil),
	}}
	var out bytes.Buffer
	if err := run(t.Context(), o, tiny, nil, &out, io.Discard); !errors.Is(err, errCases) {
		t.Fatal(err)
	}
	want := `{"case":"broken","mode":"embedded","error":"it broke"}
{"case":"late","mode":"embedded","error":"not done after 200ms: context canceled"}
{"case":"bound","mode":"embedded","value":2,"unit":"s","min":2,"max":2,"runs":1,"failed":"too slow"}
{"case":"good","mode":"embedded","value":2,"unit":"s","min":1,"max":3,"runs":3,"floor":4,"ratio":0.5}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	o.json, o.cases = false, o.cases[3:]
	out.Reset()
	if err := run(t.Context(), o, tiny, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(strings.Split(out.String(), "\n")[1]); !slices.Equal(got, []string{"good", embedded, "2", "s", "1", "3", "3", "4", "0.5"}) {
		t.Errorf("table: %q", got)
	}
}

// The interval is that of the binomial: its known ranks, and its coverage.
func TestInterval(t *testing.T) {
	upTo := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = float64(i + 1)
		}
		testkit.Rand(t).Shuffle(n, func(i, j int) { s[i], s[j] = s[j], s[i] })
		return s
	}
	for n, want := range map[int][2]float64{1: {1, 1}, 5: {1, 5}, 6: {1, 6}, 10: {2, 9}, 20: {6, 15}, 100: {40, 61}} {
		if low, high := interval(upTo(n)); low != want[0] || high != want[1] {
			t.Errorf("%d samples: ranks %g to %g, want %v", n, low, high, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2)) // the share below is that of these trials
	hits := 0
	for range 4000 {
		s := make([]float64, 20)
		for i := range s {
			s[i] = r.ExpFloat64()
		}
		if low, high := interval(s); low <= math.Ln2 && math.Ln2 <= high {
			hits++
		}
	}
	if share := float64(hits) / 4000; share < 0.945 || share > 0.975 { // exactly 0.9586
		t.Errorf("the interval has the median in %.3f of the trials", share)
	}
}

func TestMerge(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		const runs = 7
		pieces := make([][]byte, runs+1) // one stays empty
		var sorter floor.Sorter
		total := 0
		for i := range runs {
			raw := make([]byte, (n+i)/2*record)
			floor.Generate(raw, int64(total))
			total += len(raw) / record
			pieces[i] = make([]byte, len(raw))
			sorter.Sort(pieces[i], raw)
		}
		out := make([]byte, total*record)
		merge(out, pieces)
		s, err := verifyRange(t.Context(), out)
		if err != nil || s.Records != int64(total) || s.Sum != uint64(total)*uint64(max(total-1, 0))/2 {
			t.Errorf("%d records: %+v, %v", total, s, err)
		}
		if total > 1 {
			copy(out[:record], out[(total-1)*record:])
			if _, err := verifyRange(t.Context(), out); err == nil {
				t.Error("a range out of order was taken")
			}
		}
	}
}

func TestRangesAreEvenAndInOrder(t *testing.T) {
	for _, ranges := range []int{1, 3, 128} {
		if got := rangeOf(0, ranges); got != 0 {
			t.Errorf("the least key is in range %d of %d", got, ranges)
		}
		if got := rangeOf(math.MaxUint64, ranges); got != ranges-1 {
			t.Errorf("the greatest key is in range %d of %d", got, ranges)
		}
		if got := rangeOf(math.MaxUint64/2+1, ranges); got != ranges/2 {
			t.Errorf("the middle key is in range %d of %d", got, ranges)
		}
	}
}

func TestUsageCountsThisProcess(t *testing.T) {
	before := usageOf(os.Getpid())
	m, err := syscall.Mmap(-1, 0, 64*mib, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	after := usageOf(os.Getpid())
	if err := syscall.Munmap(m); err != nil {
		t.Error(err)
	}
	if grown := after.pss - before.pss; before.processes < 1 || grown < 48*mib || grown > 128*mib {
		t.Errorf("64 MiB more are seen as %d of %+v", grown, after)
	}
	if _, err := memoryOf("0"); err == nil {
		t.Error("the memory of a process that does not exist")
	}
}

func TestSinkCountsWhatItIsSent(t *testing.T) {
	s, err := startSink("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"", "mine"} {
		env := s.tracing(func(string) string { return set })
		if (len(env) > 0) != (set == "") {
			t.Errorf("with %q set it sets %q", set, env)
		}
	}
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Post(s.url+"/v1/traces", "application/x-protobuf", strings.NewReader("twelve bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 || s.bytes.Load() != 12 {
		t.Errorf("status %s, %d bytes, %v", resp.Status, s.bytes.Load(), err)
	}
	client.CloseIdleConnections()
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
