package main

import "time"

// params are the sizes of the cases.
type params struct {
	rounds, warm int // of -sync cases: round trips measured, and before
	tasks        int // of -async cases
	actors       int
	cancels      int
	puts         int   // of put-small and get-small
	large        int64 // bytes of put-large and get-large

	wait, chain, leaves, submit, queue, args, returns int
	gets, getBytes                                    int

	castBytes int64
	castTasks int

	spillStore, spillObject int64
	spillObjects            int

	sortStore, sortBytes, sortChunk int64

	leased        int   // tasks of remote-leases
	moved         int64 // bytes of transfer and its like
	receivers     int   // of nodes-broadcast
	receiverBytes int64
	cut           time.Duration // of transfer-cut

	idle time.Duration // before memory is measured

	pairs                   int // of trace-overhead
	traceRounds, traceTasks int
	listed, listPairs       int

	floorBytes  int64 // of memory floors
	floorRounds int   // of ping-pong and hops
	repeats     int   // of floors

	stale time.Duration // how old the node's figures of its store may be
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// full is what the cases are defined with.
var full = params{
	rounds: 2000, warm: 500, tasks: 100_000, actors: 2000, cancels: 500, puts: 50_000, large: gib,
	wait: 1000, chain: 1000, leaves: 5000, submit: 100_000, queue: 1_000_000, args: 10_000, returns: 3000,
	gets: 10_000, getBytes: 128 * kib,
	castBytes: gib, castTasks: 100,
	spillStore: gib, spillObject: 64 * mib, spillObjects: 64,
	sortStore: 512 * mib, sortBytes: 2 * gib, sortChunk: 16 * mib,
	leased: 1000, moved: gib, receivers: 6, receiverBytes: 256 * mib, cut: 3500 * time.Millisecond,
	idle:  10 * time.Second,
	pairs: 20, traceRounds: 2000, traceTasks: 50_000,
	listed: 1_000_000, listPairs: 10,
	floorBytes: gib, floorRounds: 20_000, repeats: 5,
}

// tiny runs every line of every case in a moment; the figures mean nothing.
var tiny = params{
	rounds: 20, warm: 2, tasks: 300, actors: 10, cancels: 5, puts: 200, large: 2 * mib,
	wait: 50, chain: 20, leaves: 40, submit: 300, queue: 500, args: 100, returns: 30,
	gets: 40, getBytes: 128 * kib,
	castBytes: 2 * mib, castTasks: 4,
	spillStore: 8 * mib, spillObject: mib, spillObjects: 24,
	sortStore: 16 * mib, sortBytes: 16 * mib, sortChunk: mib,
	leased: 100, moved: 8 * mib, receivers: 2, receiverBytes: 8 * mib, cut: 100 * time.Millisecond,
	idle:  10 * time.Millisecond,
	pairs: 2, traceRounds: 20, traceTasks: 200,
	listed: 500, listPairs: 2,
	floorBytes: 2 * mib, floorRounds: 50, repeats: 1,
	stale: time.Hour,
}
