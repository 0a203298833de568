package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
)

// profileEnv is the directory for the profiles of all processes of a run.
const profileEnv = "MOBENCH_PROFILES"

// startProfiles profiles this process, CPU until stop and allocations at stop, into dir; nothing
// if dir is empty.
func startProfiles(dir string) (stop func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	pid := os.Getpid()
	return profileTo(filepath.Join(dir, fmt.Sprintf("cpu-%d.prof", pid)), filepath.Join(dir, fmt.Sprintf("mem-%d.prof", pid)))
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
			runtime.GC() // the profile shows what was true at the last one
			return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
		})
	}
	return stop, nil
}
