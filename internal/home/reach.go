package home

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Answers gives nil if the node answers for a job: it has the job's owner, or knows that the job has ended. For a job of another home it gives an
// error: what is said to that job's owner goes another way, if there is one.
func (h *Home) Answers(job ids.JobID) error {
	if job.Home() == h.row.Home {
		return nil
	}
	return errs.New(errs.CodeNotFound, "job %v is of home %v; this node answers for home %v, and reaches no other", job, job.Home(), h.row.Home)
}
