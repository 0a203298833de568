package owner

// Counters count since the core was made; a rebuilt core begins again, less what its log
// brought back.
type Counters struct {
	Submitted, Pushed, Finished, Failed, Cancelled, Retried uint64

	LeaseRequests, LeasesGranted, WorkersLost, Isolated, OOMKills uint64

	PutOff uint64 // answers with values that waited until a client read

	Puts, Lost, Reconstructed, LineageEvicted, Packed, PagedOut uint64

	ActorsCreated, ActorRestarts, ActorResets, ActorsDied uint64
}

// Counters gives the counters.
func (c *Core) Counters() Counters { return c.stats }

// Gauges are amounts of the moment.
type Gauges struct {
	Tasks, Objects, Actors, Clients, Leases, Classes int
	InlineBytes, SpecBytes, LineageBytes             int64
	Recovering                                       bool
}

// Gauges gives the gauges. Objects counts puts and unknown references exactly, and returns
// by their tasks.
func (c *Core) Gauges() Gauges {
	return Gauges{
		Tasks: c.tasks.n, Objects: c.tasks.n + c.puts.n + len(c.placeholders), Actors: len(c.actors.byID),
		Clients: len(c.clients.byID), Leases: len(c.leases.byID), Classes: len(c.classes.byID),
		InlineBytes: c.budget.inline, SpecBytes: c.budget.specs, LineageBytes: c.lineage.bytes,
		Recovering: c.recovering,
	}
}
