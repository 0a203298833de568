package node

import (
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/blobs"
	"mobula/internal/state"
)

// getFunction brings a function here that a worker has not found in its job's directory.
func (b *blobShell) getFunction(ctx context.Context, in state.FunctionRequest) (empty, error) {
	a, err := b.away(in)
	if err != nil || a == nil {
		return empty{}, err
	}
	return empty{}, b.get(ctx, blobs.Key{Job: a.job, Kind: blobs.Function, Hash: blobs.Hash(in.Hash)}, a.job.Home())
}

// putFunction has a job's home fetch a function that a worker here has written into its job's directory.
func (b *blobShell) putFunction(ctx context.Context, in state.FunctionRequest) (empty, error) {
	a, err := b.away(in)
	if err != nil || a == nil {
		return empty{}, err
	}
	return empty{}, b.offer(ctx, a, blobs.Hash(in.Hash))
}

// away gives the agent of the job that a request is about; nil: this node is the job's home, where all of the job's functions are.
func (b *blobShell) away(in state.FunctionRequest) (*agent, error) {
	job := ids.JobID(in.Job)
	switch {
	case len(in.Hash) != len(blobs.Hash{}):
		return nil, errs.New(errs.CodeInvalid, "a hash of %d bytes: want %d", len(in.Hash), len(blobs.Hash{}))
	case b.ref == nil || job.Home() == b.numbers.Row().Home:
		return nil, nil
	}
	a := b.links.agent(job)
	if a == nil {
		return nil, errs.New(errs.CodeOwnerDied, "job %v is over", job)
	}
	return a, nil
}
