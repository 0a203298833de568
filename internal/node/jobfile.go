package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mobula/internal/ids"
	"mobula/internal/pidfd"
	"mobula/internal/safefs"
	"mobula/wire"
)

// jobFile is what a kept node must know of a job besides its log, to go on with it in its
// next life: who its driver is, and what its workers run.
type jobFile struct {
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

func (n *Node) jobPath(job ids.JobID) string {
	return filepath.Join(n.dir, "jobs", job.String()+".json")
}

// noteDriver writes a job's file, whole or not at all. Where it cannot, the job runs, and
// would not be found by the node's next life.
func (n *Node) noteDriver(s *session, h *wire.Hello, namespace string, environ []string) {
	if !n.cfg.Keep {
		return
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.pid))
	if err == nil {
		f := jobFile{s.id, s.pid, startOf(s.pid), exe, arguments(s.pid), h.Functions, namespace, h.Program, h.Others, wire.PackEnviron(environ)}
		err = writeWhole(n.jobPath(s.job), f)
	}
	if err != nil {
		n.limited.warn("a job's driver could not be noted; the job would not outlive the node's process", "job", s.job, "err", err)
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

// jobDir is what the job's processes share by file; whoever writes there first makes it.
func (n *Node) jobDir(job ids.JobID) string { return filepath.Join(n.dir, "jobs", job.String()) }

// dropDriver forgets a job's driver, and what its processes shared.
func (n *Node) dropDriver(job ids.JobID) error {
	err := os.Remove(n.jobPath(job))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(n.jobDir(job)))
}

// sweepJobDirs removes what processes of jobs shared that have not come back with the node.
func (n *Node) sweepJobDirs() {
	entries, err := os.ReadDir(filepath.Join(n.dir, "jobs"))
	if err != nil {
		return // there is none
	}
	for _, e := range entries {
		job, err := ids.ParseNumber[ids.JobID](e.Name())
		if err != nil || !e.IsDir() || n.owners.get(job) != nil {
			continue
		}
		if err := os.RemoveAll(n.jobDir(job)); err != nil {
			n.limited.warn("what a dead job's processes shared could not be removed", "job", job, "err", err)
		}
	}
}

// driverOf reads a job's file; not ok where there is none.
func (n *Node) driverOf(job ids.JobID) (f jobFile, ok bool, err error) {
	data, err := safefs.ReadFile(n.jobPath(job))
	if errors.Is(err, fs.ErrNotExist) {
		return jobFile{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return jobFile{}, false, fmt.Errorf("the file of job %v, %s: %w", job, n.jobPath(job), err)
	}
	return f, true, nil
}

// forgetDriver notes that a job's driver will not come back: it has left, or was told that the node stops.
func (n *Node) forgetDriver(job ids.JobID) {
	f, ok, _ := n.driverOf(job)
	if !ok {
		return
	}
	f.PID = 0
	if err := writeWhole(n.jobPath(job), f); err != nil {
		n.limited.warn("that a job's driver was told to go could not be noted; the node's next start waits for it", "job", job, "err", err)
	}
}

// alive tells whether the driver's process still runs.
func (f jobFile) alive() bool { return pidfd.Same(int(f.PID), f.Started) }

// startOf is when a process started; 0 for one that is gone.
func startOf(pid int32) uint64 {
	ticks, _ := pidfd.Start(int(pid))
	return ticks
}

// returnGrace is how long the owner of a job waits for its driver after the node's restart:
// as long as the driver looks for the node.
const returnGrace = rejoinTimeout + 5*time.Second
