package home

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Answers gives nil where the node answers for a job: it has the job's owner, or knows that the job has ended. What belongs to another home is refused with the
// error: this node reaches no other yet, and knows nothing of what lives there.
func (h *Home) Answers(job ids.JobID) error {
	if job.Home() == h.row.Home {
		return nil
	}
	return errs.New(errs.CodeNotFound, "job %v is of home %v; this node answers for home %v, and reaches no other", job, job.Home(), h.row.Home)
}
