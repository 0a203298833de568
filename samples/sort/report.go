package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// result is what a run prints. Sizes are bytes, times seconds.
type result struct {
	Data       int64   `json:"data"`
	Store      int64   `json:"store"`
	Partitions int     `json:"partitions"`
	Workers    int     `json:"workers"`
	Records    int     `json:"records"`
	Pieces     int     `json:"pieces"`
	Wall       float64 `json:"wall"`
	Phases     []phase `json:"phases"`
	Floor      float64 `json:"floor,omitempty"` // a plain program's time for the same work
	Ratio      float64 `json:"ratio,omitempty"`
	usage
}

type phase struct {
	Name string  `json:"name"`
	Wall float64 `json:"wall"`
}

// usage is the memory and disk that all processes together used, at most.
type usage struct {
	Segment  int64 `json:"segment"`  // pages of the shared segment that exist
	Heap     int64 `json:"heap"`     // private memory: Go heaps, stacks
	PSS      int64 `json:"pss"`      // of all processes, plus the segment's pages that none has mapped
	Samples  int   `json:"samples"`  // number of samples
	Spilled  int64 `json:"spilled"`  // bytes written to spill files
	Restored int64 `json:"restored"` // bytes read from them
}

func (r result) String() string {
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	var b strings.Builder
	fmt.Fprintf(&b, "sorted and verified %d records, %s, into %d partitions through a store of %s with %d workers\n", r.Records, size(r.Data), r.Partitions, size(r.Store), r.Workers)
	fmt.Fprintf(&b, "wall %.2f s (", r.Wall)
	for i, p := range r.Phases {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %.2f", p.Name, p.Wall)
	}
	fmt.Fprintf(&b, "), %s/s, %d pieces\n", size(int64(float64(r.Data)/r.Wall)), r.Pieces)
	if r.Samples > 0 {
		fmt.Fprintf(&b, "memory at most: segment %s, heap %s, PSS %s (%d samples)\n", size(r.Segment), size(r.Heap), size(r.PSS), r.Samples)
	}
	fmt.Fprintf(&b, "spilled %s (%.2f x the data), restored %s\n", size(r.Spilled), float64(r.Spilled)/float64(r.Data), size(r.Restored))
	if r.Floor > 0 {
		fmt.Fprintf(&b, "floor %.2f s: %.2f x\n", r.Floor, r.Ratio)
	}
	return b.String()
}

// progress shows how far a run is.
type progress interface {
	start(total int64)
	phase(name string)
	add(bytes int64)
	done()
}

func newProgress(out *os.File, show bool) progress {
	info, err := out.Stat()
	switch {
	case !show:
		return quiet{}
	case err == nil && info.Mode()&os.ModeCharDevice != 0:
		return &bar{out: out}
	}
	return &lines{out: out}
}

// lines prints a line for every tenth, if there is no terminal to draw on.
type lines struct {
	out io.Writer

	mu          sync.Mutex
	name        string // guarded by mu
	total, have int64  // guarded by mu
}

func (l *lines) start(total int64) { l.mu.Lock(); l.total = max(total, 1); l.mu.Unlock() }

func (l *lines) phase(name string) { l.mu.Lock(); l.name = name; l.mu.Unlock() }

func (l *lines) add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.have * 10 / l.total
	l.have += n
	if now := l.have * 10 / l.total; now > before {
		_, _ = fmt.Fprintf(l.out, "%-6s %3d %%\n", l.name, now*10) // a failure to show progress is no reason to stop
	}
}

func (*lines) done() {}

type quiet struct{}

func (quiet) start(int64)  {}
func (quiet) phase(string) {}
func (quiet) add(int64)    {}
func (quiet) done()        {}

// bar draws a progress bar. A failure to draw is no reason to stop sorting.
type bar struct {
	out io.Writer
	mu  sync.Mutex
	bar *progressbar.ProgressBar // guarded by mu
}

func (b *bar) start(total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(b.out), progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100_000_000), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
}

func (b *bar) phase(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bar.Describe(fmt.Sprintf("%-7s", name))
}

func (b *bar) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.bar.Add64(n)
}

func (b *bar) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.bar.Finish()
}
