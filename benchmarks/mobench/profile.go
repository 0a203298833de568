package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"
)

// profileEnv is the directory for the profiles of all processes of a run.
const profileEnv = "MOBENCH_PROFILES"

// profileEvery is how long one CPU profile of a child process is: a node kills the last of its workers
// when it closes, and what they had not written is lost.
const profileEvery = time.Second

// startProfiles profiles a child process into dir, in parts that pprof adds up; nothing if dir is empty.
func startProfiles(dir string) (stop func()) {
	if dir == "" {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for part, more := 0, true; more; part++ {
			name := filepath.Join(dir, fmt.Sprintf("cpu-%d-%03d.prof", os.Getpid(), part))
			end, err := profileTo(name, filepath.Join(dir, fmt.Sprintf("mem-%d.prof", os.Getpid())))
			if err != nil {
				fmt.Fprintln(os.Stderr, "mobench:", err)
				return
			}
			select {
			case <-time.After(profileEvery):
			case <-quit:
				more = false
			}
			end()
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}

// profileTo writes the named profiles; an empty name is none.
func profileTo(cpu, mem string) (stop func(), err error) {
	var ends []func() error
	stop = sync.OnceFunc(func() {
		for _, end := range ends {
			if err := end(); err != nil {
				fmt.Fprintln(os.Stderr, "mobench: profile:", err)
			}
		}
	})
	if cpu != "" {
		f, err := os.Create(cpu)
		if err != nil {
			return stop, fmt.Errorf("CPU profile: %w", err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return stop, errors.Join(fmt.Errorf("CPU profile: %w", err), f.Close())
		}
		ends = append(ends, func() error { pprof.StopCPUProfile(); return f.Close() })
	}
	if mem != "" {
		f, err := os.Create(mem)
		if err != nil {
			return stop, fmt.Errorf("memory profile: %w", err)
		}
		ends = append(ends, func() error {
			return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
		})
	}
	return stop, nil
}
