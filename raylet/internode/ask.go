package internode

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Ask is a question about the node that it is sent to. Method and Body are those of a wire.Request.
type Ask struct {
	ID     uint64 // of the node that asks; an Answer repeats it
	Method string
	Body   []byte
}

// Answer has a part of an answer: parts are in order, numbered from 0.
type Answer struct {
	ID   uint64
	Part uint32
	Last bool
	Body []byte
	Err  *errs.Error // with the last part: there is no answer
}

// WorkerOutput is what workers of a job wrote, for the job's home.
type WorkerOutput struct {
	Job   ids.JobID
	Lines []byte // whole ones, each after its worker's name
	Lost  uint64 // lines before these that are left out
}

func (*Ask) msg()          {}
func (*Answer) msg()       {}
func (*WorkerOutput) msg() {}
