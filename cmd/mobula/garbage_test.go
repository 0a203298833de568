package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A small node's garbage is collected in large parts, and what that takes is no memory. It is so in a process that begins: where the heap was large before, the
// runtime clears what it gives out.
func TestGarbageIsCollectedInLargeParts(t *testing.T) {
	const own = "MOBULA_TEST_OWN_PROCESS"
	if os.Getenv(own) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), own+"=1", "GOGC=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := resident(t)
	defer allowGarbage(smallStore - 1)()
	if grown := resident(t) - before; grown > untouched/4 {
		t.Errorf("the process has %d bytes more", grown)
	}
	runtime.GC()
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	for range untouched * smallGC / 100 / 2 >> 10 {
		garbage = make([]byte, 1<<10)
	}
	runtime.ReadMemStats(&to)
	if n := to.NumGC - from.NumGC; n > 0 {
		t.Errorf("%d bytes of garbage were collected %d times", to.TotalAlloc-from.TotalAlloc, n)
	}
}

var garbage []byte // on the heap

// resident is how much memory this process has.
func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
