package main

import (
	"context"
	"fmt"
)

// The systems.
const (
	mobulas    = "mobula"
	protoactor = "protoactor"
	floors     = "floor"
)

// seatOf is an actor that a program talks to.
type seatOf interface {
	// asker gives a function that asks once and checks the answer. Each goroutine has one of its own.
	asker() func(i int) error
	// tell sends a message that nothing answers.
	tell(i int) error
	// heard is how many such messages have come, when all have.
	heard() (int, error)
	// outstanding asks n times, window at once: each answer is waited for by itself, and followed by another call; or, with all, those of a window
	// together.
	outstanding(n, window int, all bool) error
	close() error
}

// room is actors of one process, each of which knows the next, and the last the first. The program talks to the first.
type room interface {
	seatOf
	// asks has an actor ask the next one n times, and gives what waits for that.
	asks(actor, n int) func() error
	// pass gives a token to an actor, which is passed on so often; the last one puts it into over.
	pass(actor, hops int) error
	over() <-chan struct{}
}

// open opens actors in this process.
func open[T any](ctx context.Context, system string, k *kind[T], actors int) (room, error) {
	switch system {
	case mobulas:
		return openMobula(ctx, k, actors, false)
	case protoactor:
		return openProtoactor(k, actors), nil
	case floors:
		return openChannels(k, actors), nil
	}
	return nil, unknown(system)
}

// openAway opens an actor in another process.
func openAway[T any](ctx context.Context, system string, k *kind[T]) (seatOf, error) {
	switch system {
	case mobulas:
		return openMobula(ctx, k, 1, true)
	case floors:
		return openSocket(ctx, k.bytes)
	}
	return nil, unknown(system)
}

func unknown(system string) error { return fmt.Errorf("the row does not run on %q", system) }

// wrong is the error of an answer to i.
func wrong(i, got int) error { return fmt.Errorf("%d was answered with %d", i, got) }
