package jobfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mobula/internal/ids"
	"mobula/internal/pidfd"
	"mobula/internal/safefs"
	"mobula/wire"
)

// Dir is where a node keeps them.
type Dir struct {
	Path string                        // the node's directory
	Keep bool                          // the node may have a next life; else no driver is noted
	Warn func(msg string, args ...any) // of what could not be written; the job runs on
}

// File is what a kept node must know of a job besides its log, to go on with it in its
// next life: who its driver is, and what its workers run.
type File struct {
	Client    ids.ClientID    `json:"client"`
	PID       int32           `json:"pid"`
	Started   uint64          `json:"started"` // the process' start in clock ticks, which tells it from a later one of the number
	Exe       string          `json:"exe"`
	Args      []string        `json:"args"`
	Functions []wire.FuncInfo `json:"functions"`
	Namespace string          `json:"namespace,omitempty"`
	Said      *wire.Program   `json:"program,omitempty"`
	Others    []wire.Program  `json:"others,omitempty"`
	Environ   []byte          `json:"environ,omitempty"` // the driver's, with its secrets: the file is the user's alone
}

// Alive tells whether the driver's process still runs.
func (f File) Alive() bool { return pidfd.Same(int(f.PID), f.Started) }

// Log is where a job's log lies.
func (d *Dir) Log(job ids.JobID) string { return filepath.Join(d.Path, "owner", job.String()) }

// Shared is what the job's processes share by file; whoever writes there first makes it.
func (d *Dir) Shared(job ids.JobID) string { return filepath.Join(d.Path, "jobs", job.String()) }

func (d *Dir) file(job ids.JobID) string {
	return filepath.Join(d.Path, "jobs", job.String()+".json")
}

// Note writes a job's file, whole or not at all; which program the driver's process runs, and since when, it finds out. Where it cannot, the job runs, and
// would not be found by the node's next life.
func (d *Dir) Note(job ids.JobID, f File) {
	if !d.Keep {
		return
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", f.PID))
	if err == nil {
		f.Exe, f.Started = exe, startOf(f.PID)
		err = writeWhole(d.file(job), f)
	}
	if err != nil {
		d.Warn("a job's driver could not be noted; the job would not outlive the node's process", "job", job, "err", err)
	}
}

func writeWhole(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := safefs.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return safefs.WriteFile(path, data, 0o600)
}

// Read reads a job's file; not ok where there is none.
func (d *Dir) Read(job ids.JobID) (f File, ok bool, err error) {
	data, err := safefs.ReadFile(d.file(job))
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return File{}, false, fmt.Errorf("the file of job %v, %s: %w", job, d.file(job), err)
	}
	return f, true, nil
}

// Forget notes that a job's driver will not come back: it has left, or was told that the node stops.
func (d *Dir) Forget(job ids.JobID) {
	f, ok, _ := d.Read(job)
	if !ok {
		return
	}
	f.PID = 0
	if err := writeWhole(d.file(job), f); err != nil {
		d.Warn("that a job's driver was told to go could not be noted; the node's next start waits for it", "job", job, "err", err)
	}
}

// Drop removes a job's file, and what its processes shared.
func (d *Dir) Drop(job ids.JobID) error {
	err := os.Remove(d.file(job))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(d.Shared(job)))
}

// Sweep removes what processes of jobs shared that have not come back with the node.
func (d *Dir) Sweep(there func(ids.JobID) bool) {
	for _, job := range numbered(filepath.Join(d.Path, "jobs")) {
		if there(job) {
			continue
		}
		if err := os.RemoveAll(d.Shared(job)); err != nil {
			d.Warn("what a dead job's processes shared could not be removed", "job", job, "err", err)
		}
	}
}

// Logged are the jobs that have a log.
func (d *Dir) Logged() []ids.JobID { return numbered(filepath.Join(d.Path, "owner")) }

// Last is the number of the last job of which there is a log, or what is left of one: release 0.4 counted from there.
func (d *Dir) Last() uint64 {
	var last uint64
	for _, job := range append(d.Logged(), numbered(filepath.Join(d.Path, LostName))...) {
		last = max(last, uint64(job)&ids.MaxNumber)
	}
	return last
}

// numbered are the jobs that have a directory in dir.
func numbered(dir string) []ids.JobID {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there is none
	}
	var jobs []ids.JobID
	for _, e := range entries {
		if job, err := ids.ParseNumber[ids.JobID](e.Name()); err == nil && e.IsDir() {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	return jobs
}

// startOf is when a process started; 0 for one that is gone.
func startOf(pid int32) uint64 {
	ticks, _ := pidfd.Start(int(pid))
	return ticks
}
