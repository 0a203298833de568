package memstat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

const meminfo = "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:   12582912 kB\nHugePages_Total:       0\n"

func TestNodeMemoryIsTheNarrowest(t *testing.T) {
	const k = 1 << 10
	for _, c := range []struct {
		name        string
		files       fstest.MapFS
		used, limit uint64
		source      string
		total       uint64
	}{
		{"no cgroup", fstest.MapFS{}, 4194304 * k, 16777216 * k, "node", 16777216 * k},
		{"v2 without a limit", fstest.MapFS{
			"proc/self/cgroup":                file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max":      file("max\n"),
			"sys/fs/cgroup/a/memory.current":  file("5\n"),
			"sys/fs/cgroup/memory.controller": file(""),
		}, 4194304 * k, 16777216 * k, "node", 16777216 * k},
		{"v2 limit of a parent, page cache not counted", fstest.MapFS{
			"proc/self/cgroup":                file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":    file("max\n"),
			"sys/fs/cgroup/a/memory.max":      file("1000\n"),
			"sys/fs/cgroup/a/memory.current":  file("900\n"),
			"sys/fs/cgroup/a/memory.stat":     file("anon 5\ninactive_file 300\n"),
			"sys/fs/cgroup/memory.controller": file(""),
		}, 600, 1000, "cgroup", 1000},
		{"v2 with room to spare", fstest.MapFS{
			"proc/self/cgroup":               file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max":     file("1000\n"),
			"sys/fs/cgroup/a/memory.current": file("10\n"),
		}, 4194304 * k, 16777216 * k, "node", 1000},
		{"v1", fstest.MapFS{
			"proc/self/cgroup": file("5:cpuset:/\n4:memory:/c\n"),
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes":  file("1000\n"),
			"sys/fs/cgroup/memory/c/memory.usage_in_bytes":  file("990\n"),
			"sys/fs/cgroup/memory/c/memory.stat":            file("inactive_file 1\ntotal_inactive_file 90\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":    file("9223372036854771712\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes":    file("1\n"),
			"sys/fs/cgroup/memory/c/unrelated/memory.limit": file("1\n"),
		}, 900, 1000, "cgroup", 1000},
		{"v1 in a container, which sees its own cgroup as the root", fstest.MapFS{
			"proc/self/cgroup":                           file("4:memory:/docker/0123\n0::/docker/0123\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("2000\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("1000\n"),
		}, 1000, 2000, "cgroup", 2000},
		{"v2 in a container", fstest.MapFS{
			"proc/self/cgroup":             file("0::/\n"),
			"sys/fs/cgroup/memory.max":     file("3000\n"),
			"sys/fs/cgroup/memory.current": file("2900\n"),
		}, 2900, 3000, "cgroup", 3000},
		{"a limit above the machine's memory", fstest.MapFS{
			"proc/self/cgroup":             file("0::/\n"),
			"sys/fs/cgroup/memory.max":     file("99999999999999\n"),
			"sys/fs/cgroup/memory.current": file("2900\n"),
		}, 4194304 * k, 16777216 * k, "node", 16777216 * k},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.files["proc/meminfo"] = file(meminfo)
			used, limit, source, err := (&Sampler{FS: c.files}).Node()
			if err != nil || used != c.used || limit != c.limit || source != c.source {
				t.Errorf("%d of %d (%s), %v", used, limit, source, err)
			}
			if total, err := (&Sampler{FS: c.files}).Total(); err != nil || total != c.total {
				t.Errorf("in all %d, %v, want %d", total, err, c.total)
			}
		})
	}
	if _, _, _, err := (&Sampler{FS: fstest.MapFS{"proc/meminfo": file("MemFree: 3 kB\n")}}).Node(); err == nil {
		t.Error("a meminfo without a total is believed")
	}
	if _, err := (&Sampler{FS: fstest.MapFS{"proc/meminfo": file("MemFree: 3 kB\n")}}).Total(); err == nil {
		t.Error("a meminfo without a total is believed")
	}
}

func TestRoomIsTheLeast(t *testing.T) {
	fs := fstest.MapFS{
		"proc/meminfo":                     file(meminfo),
		"proc/self/cgroup":                 file("0::/a/b\n"),
		"sys/fs/cgroup/a/b/memory.max":     file("8000\n"), // used most by its share, and has more room
		"sys/fs/cgroup/a/b/memory.current": file("4000\n"),
		"sys/fs/cgroup/a/memory.max":       file("3000\n"),
		"sys/fs/cgroup/a/memory.current":   file("1000\n"),
	}
	s := &Sampler{FS: fs}
	for range 2 { // the second time anew
		if _, _, source, err := s.Node(); err != nil || source != "cgroup" {
			t.Fatalf("%s, %v", source, err)
		}
	}
	if got := s.Room(0.5); got != 0 {
		t.Errorf("below half: %d", got)
	}
	if got := s.Room(0.75); got != 1250 {
		t.Errorf("below three quarters: %d, want 1250", got)
	}
}

func TestProcessMemoryIsWithoutTheSegment(t *testing.T) {
	s := &Sampler{FS: fstest.MapFS{
		"proc/7/status":       file("Name:\tx\nRssAnon:\t   1800 kB\n"),
		"proc/7/smaps_rollup": file("00400000-7ff000000000 ---p 00000000 00:00 0    [rollup]\nRss:  5000 kB\nPss:  4000 kB\nPss_Shmem:  2500 kB\n"),
		"proc/8/status":       file("Name:\tx\nRssAnon:\t   12 kB\n"),
		"proc/8/smaps_rollup": &fstest.MapFile{Mode: fs.ModeDir},
	}}
	if n, err := s.Process(7); err != nil || n != 1500<<10 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := s.Process(8); err != nil || n != 12<<10 {
		t.Errorf("smaps cannot be read: %d, %v", n, err)
	}
	if _, err := s.Process(9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process that is gone: %v", err)
	}
}

// slowFS takes a while to read smaps, and counts how often it has to.
type slowFS struct {
	fstest.MapFS
	now   *time.Time
	takes time.Duration
	reads int
}

func (f *slowFS) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, "/smaps_rollup") {
		f.reads++
		*f.now = f.now.Add(f.takes)
	}
	return f.MapFS.ReadFile(name)
}

// interval is what is between two samples.
const interval = 250 * time.Millisecond

func TestSmapsIsReadTheLessOftenTheLongerItTakes(t *testing.T) {
	now := time.Unix(1000, 0)
	files := &slowFS{MapFS: fstest.MapFS{"proc/meminfo": file(meminfo)}, now: &now, takes: 40 * time.Millisecond}
	set := func(pss, anon int) {
		files.MapFS["proc/7/smaps_rollup"] = file(fmt.Sprintf("Pss:  %d kB\nPss_Shmem:  2500 kB\n", pss))
		files.MapFS["proc/7/status"] = file(fmt.Sprintf("RssAnon:\t%d kB\n", anon))
	}
	s := &Sampler{FS: files, Clock: func() time.Time { return now }}
	sample := func(want uint64) {
		t.Helper()
		if _, _, _, err := s.Node(); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Process(7); err != nil || n != want<<10 {
			t.Errorf("%d KiB, %v, want %d", n>>10, err, want)
		}
		now = now.Add(interval)
	}
	set(4000, 2000)
	sample(1500)
	set(9999, 2700) // 700 KiB more of its own
	sample(2200)
	set(9999, 100) // less than was shared
	sample(0)
	for range 100 * time.Second / interval {
		set(4100, 2100)
		sample(1600)
	}
	if least, most := 10, 14; files.reads < least || files.reads > most {
		t.Errorf("in 100 s smaps was read %d times, which took 40 ms each; want %d to %d", files.reads, least, most)
	}
}

// If a process number is reused, the old process' figures do not count for the new one.
func TestProcessesThatAreNotAskedForAreForgotten(t *testing.T) {
	now := time.Unix(1000, 0)
	files := &slowFS{MapFS: fstest.MapFS{
		"proc/meminfo": file(meminfo), "proc/7/smaps_rollup": file("Pss:  4000 kB\n"), "proc/7/status": file("RssAnon:\t5000 kB\n"),
	}, now: &now, takes: time.Hour}
	s := &Sampler{FS: files, Clock: func() time.Time { return now }}
	for range 2 {
		if n, err := s.Process(7); err != nil || n != 4000<<10 {
			t.Fatalf("%d, %v", n, err)
		}
		for range 2 {
			if _, _, _, err := s.Node(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if files.reads != 2 || len(s.processes) != 0 {
		t.Errorf("smaps was read %d times, want 2; %d processes are known", files.reads, len(s.processes))
	}
}

func TestAvailableIsTheLeastBound(t *testing.T) {
	files := fstest.MapFS{}
	check := func(want uint64, bound string) {
		t.Helper()
		if n, what := Available(files); n != want || !strings.Contains(what, bound) {
			t.Fatalf("available %d in %s, want %d in %s", n, what, want, bound)
		}
	}
	check(^uint64(0), "no known")
	files["proc/meminfo"] = file("MemTotal: 999 kB\nMemAvailable:    5000 kB\n")
	check(5000<<10, "meminfo")
	files["proc/self/cgroup"] = file("0::/a/b\n")
	files["sys/fs/cgroup/a/b/memory.max"] = file("max\n")
	files["sys/fs/cgroup/a/b/memory.current"] = file("1000\n")
	check(5000<<10, "meminfo")
	files["sys/fs/cgroup/a/memory.max"] = file("4000000\n") // a parent's limit
	files["sys/fs/cgroup/a/memory.current"] = file("1000000\n")
	check(3000000, "cgroup")
	files["sys/fs/cgroup/a/memory.stat"] = file("active_file 7\ninactive_file_x 900000\ninactive_file 500000\n")
	check(3500000, "cgroup")
	files["proc/self/cgroup"] = file("5:cpu:/x\n4:memory,hugetlb:/job\n")
	files["sys/fs/cgroup/memory/job/memory.limit_in_bytes"] = file("2000000")
	files["sys/fs/cgroup/memory/job/memory.usage_in_bytes"] = file("2500000")
	files["sys/fs/cgroup/memory/job/memory.stat"] = file("inactive_file 1\ntotal_inactive_file 600000\n")
	check(100000, "cgroup")
}

// The real thing: this process and this machine.
func TestThisMachine(t *testing.T) {
	s := &Sampler{FS: os.DirFS("/")}
	used, limit, source, err := s.Node()
	if err != nil || used == 0 || limit <= used || source == "" {
		t.Errorf("%d of %d (%s), %v", used, limit, source, err)
	}
	before, err := s.Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	hog := make([]byte, 64<<20)
	for i := range hog {
		hog[i] = 1
	}
	after, err := s.Process(os.Getpid())
	if err != nil || after < before+60<<20 {
		t.Errorf("64 MiB more: %d before, %d after, %v", before, after, err)
	}
	if hog[len(hog)-1] != 1 {
		t.Error("unreachable")
	}
}
