package internode

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Check tells whether a node may send a message to this one: a node speaks for the jobs whose home it is, and for its own clients, leases and objects to the homes
// of other jobs. What is inside a message must be about the message's job as well: a job's home frees no object of another job. errs.ErrPermission: it may not.
func Check(m Msg, from, self ids.Home) error {
	switch m := m.(type) {
	case *OpenJob:
		return ofHome(m, m.Job, from)
	case *CloseJob:
		return ofHome(m, m.Job, from)
	case *ToClients:
		return ofHome(m, m.Job, from)
	case *ToSched:
		return firstOf(ofHome(m, m.Job, from), toSched(m, self))
	case *ToStore:
		return firstOf(ofHome(m, m.Job, from), toStore(m, self))
	case *BlobTaken:
		return ofHome(m, m.Job, from)

	case *JobClosed:
		return toHome(m, m.Job, from, self)
	case *ClientJoined:
		if m.Role != wire.RoleWorker {
			return refuse(m, from, "a client of role %d, and a job has nothing but workers on other nodes", m.Role)
		}
		return firstOf(toHome(m, m.Job, from, self), client(m, m.Client, from, from))
	case *ClientGone:
		return firstOf(toHome(m, m.Job, from, self), client(m, m.Client, from, from))
	case *FromClients:
		err := toHome(m, m.Job, from, self)
		for i := range m.Items {
			err = firstOf(err, client(m, m.Items[i].Client, from, from))
		}
		return err
	case *FromSched:
		return firstOf(toHome(m, m.Job, from, self), fromSched(m, from))
	case *FromStore:
		return firstOf(toHome(m, m.Job, from, self), fromStore(m, from))
	case *WorkerOutput:
		return toHome(m, m.Job, from, self)
	case *OfferBlob:
		return toHome(m, m.Job, from, self)

	case *FindBlob: // of a job of this node any, of one of its own a function that was pickled here
		return blob(m, m.Job, m.What, from, self)
	case *PullBlob:
		return blob(m, m.Job, m.What, from, self)
	case *BlobFound:
		return blob(m, m.Job, m.What, self, from)
	case *BlobChunk:
		return blob(m, m.Job, m.What, self, from)

	case *PeerWords:
		err := betweenJobs(m, m.From, m.To, from, self)
		for _, w := range m.Msgs {
			err = firstOf(err, peerWord(m, w, from))
		}
		return err
	case *ToPeer:
		return firstOf(betweenJobs(m, m.From, m.To, from, self), toPeer(m, from))

	case *Report, *AskTime, *TellTime, *Ask, *Answer: // of a node, which is who it says
		return nil
	}
	return errs.New(errs.CodeProtocol, "a %T is no message between nodes", m)
}

func firstOf(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func refuse(m Msg, from ids.Home, format string, args ...any) error {
	return errs.New(errs.CodePermission, "%v of node %v: "+format, append([]any{m.Kind(), from}, args...)...)
}

// ofHome is for what a job's home says.
func ofHome(m Msg, job ids.JobID, from ids.Home) error {
	if job.Home() != from {
		return refuse(m, from, "it speaks for job %v, whose home is node %v", job, job.Home())
	}
	return nil
}

// toHome is for what is said to a job's home.
func toHome(m Msg, job ids.JobID, from, self ids.Home) error {
	if job.Home() != self {
		return refuse(m, from, "it answers to job %v, whose home is node %v", job, job.Home())
	}
	return nil
}

// blob is for a question of one node to another for what a job runs.
func blob(m Msg, job ids.JobID, what BlobKind, asks, has ids.Home) error {
	if home := job.Home(); home != has && (home != asks || what != BlobFunction) {
		return refuse(m, asks, "node %v has nothing that job %v runs, whose home is node %v", has, job, home)
	}
	return nil
}

// client is for what is said of a client of a node. 0: of none.
func client(m Msg, c ids.ClientID, from, node ids.Home) error {
	if c != 0 && c.Home() != node {
		return refuse(m, from, "client %v is of node %v, and not of node %v", c, c.Home(), node)
	}
	return nil
}

// lease is for what is said of a lease of a node.
func lease(m Msg, l ids.LeaseID, from, node ids.Home) error {
	if l.Home() != node {
		return refuse(m, from, "lease %v is of node %v, and not of node %v", l, l.Home(), node)
	}
	return nil
}

// of is for what is said of something that belongs to a job.
func of(m Msg, said, owner ids.JobID, from ids.Home) error {
	if owner != said {
		return refuse(m, from, "it is about job %v, and what is inside about job %v", said, owner)
	}
	return nil
}

// toSched checks what an owner says to the scheduler of this node. Whether a lease is of the job the scheduler knows (raylet.OfJob).
func toSched(m *ToSched, self ids.Home) error {
	from := m.Job.Home()
	switch x := m.Msg.(type) {
	case sched.Want:
		return of(m, m.Job, x.Key.Job, from)
	case sched.DropJob:
		return of(m, m.Job, x.Job, from)
	case sched.OwnerRestarted:
		return of(m, m.Job, x.Job, from)
	case sched.Holdings:
		err := of(m, m.Job, x.Job, from)
		for i := range x.Wants {
			err = firstOf(err, of(m, m.Job, x.Wants[i].Key.Job, from))
		}
		for i := range x.Held {
			h := &x.Held[i]
			err = firstOf(err, of(m, m.Job, h.Key.Job, from))
			err = firstOf(err, firstOf(lease(m, h.Lease, from, self), client(m, h.Worker, from, self)))
		}
		return err
	case sched.Return:
		return lease(m, x.Lease, from, self)
	case sched.BlockCPU:
		return lease(m, x.Lease, from, self)
	case sched.UnblockCPU:
		return lease(m, x.Lease, from, self)
	case sched.ActorUp:
		return lease(m, x.Lease, from, self)
	case sched.DrainWorker:
		return client(m, x.Worker, from, self)
	case sched.KillWorker:
		return client(m, x.Worker, from, self)
	}
	return noPlace(m, m.Msg)
}

// fromSched checks what the scheduler of another node says to an owner of this one.
func fromSched(m *FromSched, from ids.Home) error {
	switch x := m.Msg.(type) {
	case sched.Granted:
		return firstOf(of(m, m.Job, x.Key.Job, from), firstOf(lease(m, x.Lease, from, from), client(m, x.Worker, from, from)))
	case sched.Reclaim:
		return lease(m, x.Lease, from, from)
	case sched.Revoked:
		return firstOf(lease(m, x.Lease, from, from), client(m, x.Worker, from, from))
	case sched.Resumed:
		return lease(m, x.Lease, from, from)
	case sched.Infeasible:
		return of(m, m.Job, x.Key.Job, from)
	case sched.Feasible:
		return of(m, m.Job, x.Key.Job, from)
	case sched.Resync:
		return nil
	}
	return noPlace(m, m.Msg)
}

// toStore checks what an owner says to the store of this node. It may have any object read, which it may have borrowed, and changes those of its own job alone.
func toStore(m *ToStore, self ids.Home) error {
	from := m.Job.Home()
	switch x := m.Msg.(type) {
	case objectstore.SealObject:
		return of(m, m.Job, x.ID.Job(), from)
	case objectstore.DropAttempt:
		return of(m, m.Job, x.ID.Job(), from)
	case objectstore.Located:
		return of(m, m.Job, x.ID.Job(), from)
	case objectstore.Free:
		return objectsOf(m, m.Job, x.IDs, from)
	case objectstore.PinForGet:
		asks := x.Job
		if asks == 0 {
			asks = x.ID.Job()
		}
		return firstOf(of(m, m.Job, asks, from), client(m, x.Client, from, self))
	case objectstore.UnpinForGet:
		return client(m, x.Client, from, self)
	case objectstore.PinArgs:
		return firstOf(firstOf(of(m, m.Job, x.Job, from), of(m, m.Job, x.Task.Job(), from)), client(m, x.Worker, from, self))
	case objectstore.UnpinArgs:
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.AbandonArgs:
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.KeepArgs:
		return of(m, m.Job, x.Job, from)
	case objectstore.ArgsIdle:
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.GoOn: // in a call of another job a task may make objects of its actor's job
		return client(m, x.Client, from, self)
	case objectstore.ListObjects:
		return of(m, m.Job, x.Job, from)
	case objectstore.DropJob:
		return of(m, m.Job, x.Job, from)
	case objectstore.ReadAhead:
		return nil
	}
	return noPlace(m, m.Msg)
}

// fromStore checks what the store of another node says to an owner of this one.
func fromStore(m *FromStore, from ids.Home) error {
	switch x := m.Msg.(type) {
	case objectstore.ArgsPinned:
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.ArgsWait:
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.ArgsRefused:
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.CreateWaits: // the task may be another job's, as in GoOn
		return client(m, x.Client, from, from)
	case objectstore.CreateReady:
		return client(m, x.Client, from, from)
	case objectstore.Lost:
		if x.Task.IsZero() {
			return client(m, x.Client, from, from)
		}
		return of(m, m.Job, x.Task.Job(), from)
	case objectstore.Imported:
		return of(m, m.Job, x.ID.Job(), from)
	case objectstore.Evicted:
		return of(m, m.Job, x.ID.Job(), from)
	case objectstore.Inventory:
		err := of(m, m.Job, x.Job, from)
		for i := range x.Objects {
			err = firstOf(err, of(m, m.Job, x.Objects[i].ID.Job(), from))
		}
		for i := range x.Left {
			err = firstOf(err, of(m, m.Job, x.Left[i].ID.Job(), from))
		}
		for i := range x.Unsealed {
			err = firstOf(err, of(m, m.Job, x.Unsealed[i].ID.Job(), from))
		}
		return err
	}
	return noPlace(m, m.Msg)
}

// betweenJobs is for what the owner of one job says to the owner of another.
func betweenJobs(m Msg, says, hears ids.JobID, from, self ids.Home) error {
	return firstOf(ofHome(m, says, from), toHome(m, hears, from, self))
}

// peerWord checks one of the words of an owner to another: about objects of the job that hears it, or what became of one of the job that says it.
func peerWord(m *PeerWords, w wire.Msg, from ids.Home) error {
	switch w := w.(type) {
	case *wire.AddRef:
		return of(m, m.To, w.ID.Job(), from)
	case *wire.Get:
		return of(m, m.To, w.ID.Job(), from)
	case *wire.Release:
		return objectsOf(m, m.To, w.IDs, from)
	case *wire.Holdings:
		return objectsOf(m, m.To, w.Handles, from)
	case *wire.Cancel:
		return of(m, m.To, w.Task.Job(), from)
	case *wire.Resolved:
		return of(m, m.From, w.ID.Job(), from)
	case *wire.Resync:
		return nil
	}
	return noPlace(m, w)
}

// toPeer checks what only owners say to each other.
func toPeer(m *ToPeer, from ids.Home) error {
	switch x := m.Msg.(type) {
	case owner.Bring:
		return of(m, m.To, x.ID.Job(), from)
	case owner.Brought:
		return of(m, m.From, x.ID.Job(), from)
	case owner.BorrowLost:
		return of(m, m.To, x.Lost.ID.Job(), from)
	case owner.Passing:
		return objectsOf(m, m.To, x.Refs, from)
	case owner.Arrived, owner.JobGone, owner.Sync, owner.Synced, owner.Leaving, owner.Left:
		return nil
	}
	return noPlace(m, m.Msg)
}

// objectsOf is for what is said of objects of a job.
func objectsOf(m Msg, job ids.JobID, list []ids.ObjectID, from ids.Home) error {
	for _, id := range list {
		if err := of(m, job, id.Job(), from); err != nil {
			return err
		}
	}
	return nil
}

func noPlace(m Msg, inside any) error {
	return errs.New(errs.CodeProtocol, "%v: a %T does not go between nodes", m.Kind(), inside)
}
