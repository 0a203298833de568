package jobfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
	"mobula/internal/state"
)

// A job whose log or file cannot be read does not come back, and keeps no other from it. What there is of it is moved to the directory
// lost/JOB, with the reason beside it, and stays until somebody has looked and removes it. Its objects are dropped, its actors' names are
// free again, and a driver that comes back for it is told why.

// LostName is the directory of jobs that were set aside, in the node's.
const LostName = "lost"

const whyName = "why.json"

func (d *Dir) lost(job ids.JobID) string { return filepath.Join(d.Path, LostName, job.String()) }

// IsDamage tells what is wrong with a job's state from what this process lacks, with which no job would come back.
func IsDamage(err error) bool {
	for _, short := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, errs.ErrOutOfDisk, errs.ErrShutdown} {
		if errors.Is(err, short) {
			return false
		}
	}
	return true
}

// SetAside puts away what is left of a job that cannot come back, and says where.
func (d *Dir) SetAside(job ids.JobID, why error, now int64) (dir string, err error) {
	dir = d.lost(job)
	if err := safefs.MakeDir(dir); err != nil {
		return dir, err
	}
	data, err := json.Marshal(state.LostJob{ID: job.String(), Why: why.Error(), Path: dir, Since: now})
	if err != nil {
		return dir, err
	}
	if err := safefs.WriteFile(filepath.Join(dir, whyName), data, 0o600); err != nil {
		return dir, err
	}
	for from, to := range map[string]string{d.Log(job): "log", d.file(job): "job.json", d.Shared(job): "shared"} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return dir, fmt.Errorf("job %v cannot come back (%w), and cannot be set aside: %w", job, why, err)
		}
	}
	return dir, nil
}

// Lost lists the jobs that were set aside, in this life of the node or before.
func (d *Dir) Lost() []state.LostJob {
	var out []state.LostJob
	for _, job := range numbered(filepath.Join(d.Path, LostName)) {
		lost := state.LostJob{ID: job.String(), Path: d.lost(job), Why: "not known"}
		if data, err := safefs.ReadFile(filepath.Join(lost.Path, whyName)); err == nil {
			_ = json.Unmarshal(data, &lost) // what it does not say is not known
		}
		out = append(out, lost)
	}
	return out
}

// WhyLost is the end of a sentence about a job that is not there: why it was set aside, if it was.
func (d *Dir) WhyLost(job ids.JobID) string {
	for _, l := range d.Lost() {
		if l.ID == job.String() {
			return fmt.Sprintf(": it was set aside when the node started, and lies in %s: %s", l.Path, l.Why)
		}
	}
	return ""
}
