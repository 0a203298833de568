package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
	"mobula/internal/state"
	"mobula/objectstore"
)

// A job whose log or file cannot be read does not come back, and keeps no other from it. What there is of it is moved to the directory
// lost/JOB, with the reason beside it, and stays until somebody has looked and removes it. Its objects are dropped, its actors' names are
// free again, and a driver that comes back for it is told why.

const (
	lostName = "lost"
	whyName  = "why.json"
)

func (n *Node) lostDir(job ids.JobID) string { return filepath.Join(n.dir, lostName, job.String()) }

// isDamage tells what is wrong with a job's state from what this process lacks, with which no job would come back.
func isDamage(err error) bool {
	for _, short := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, errs.ErrOutOfDisk, errs.ErrShutdown} {
		if errors.Is(err, short) {
			return false
		}
	}
	return true
}

// setAside puts away what is left of a job that cannot come back.
func (n *Node) setAside(job ids.JobID, why error) error {
	dir := n.lostDir(job)
	if err := safefs.MakeDir(dir); err != nil {
		return err
	}
	lost := state.LostJob{ID: job.String(), Why: why.Error(), Path: dir, Since: n.clock.Now()}
	data, err := json.Marshal(lost)
	if err != nil {
		return err
	}
	if err := safefs.WriteFile(filepath.Join(dir, whyName), data, 0o600); err != nil {
		return err
	}
	for from, to := range map[string]string{n.ownerDir(job): "log", n.jobPath(job): "job.json", n.jobDir(job): "shared"} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("job %v cannot come back (%w), and cannot be set aside: %w", job, why, err)
		}
	}
	n.dropProgram(job)
	n.toStore(objectstore.DropJob{Job: job})
	n.cfg.Logger.Error("a job cannot come back and was set aside: its state is damaged, or of a newer version; its objects and actors are lost",
		"job", job, "err", why, "path", dir)
	return nil
}

// lostJobs lists the jobs that were set aside, in this life or before.
func (n *Node) lostJobs() []state.LostJob {
	var out []state.LostJob
	for _, job := range numbered(filepath.Join(n.dir, lostName)) {
		lost := state.LostJob{ID: job.String(), Path: n.lostDir(job), Why: "not known"}
		if data, err := safefs.ReadFile(filepath.Join(lost.Path, whyName)); err == nil {
			_ = json.Unmarshal(data, &lost) // what it does not say is not known
		}
		out = append(out, lost)
	}
	return out
}

// whyLost is the end of a sentence about a job that is not there: why it was set aside, if it was.
func (n *Node) whyLost(job ids.JobID) string {
	for _, l := range n.lostJobs() {
		if l.ID == job.String() {
			return fmt.Sprintf(": it was set aside when the node started, and lies in %s: %s", l.Path, l.Why)
		}
	}
	return ""
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
