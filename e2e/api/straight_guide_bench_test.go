package api

import (
	"testing"

	"mobula"
	"mobula/mobulatest"
)

// BenchmarkMessages is the rows of the guide's page about messages, in one process and in two: a Tell, and the asks of it that cost something else.
func BenchmarkMessages(b *testing.B) {
	for _, w := range []struct {
		name string
		opts []mobula.StartOption
	}{{"one-process", nil}, {"two-processes", []mobula.StartOption{mobula.WithProcesses()}}} {
		b.Run(w.name, func(b *testing.B) {
			ctx := mobulatest.Start(b, append(w.opts, mobula.WithCPUs(2))...).Context(b.Context())
			at := func(opts ...mobula.ActorOption) mobula.ActorRef[seat] {
				a, err := seats.Spawn(ctx, opts...)
				if err != nil {
					b.Fatal(err)
				}
				told(b, ctx, goInt(ctx, a, 0))
				return a
			}
			a, next, again := at(), at(), at(mobula.MaxRestarts(1), mobula.MaxTaskRetries(1))
			b.Run("tell", func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					if err := seatDrop.Tell(ctx, a, mobula.V(i)); err != nil {
						b.Fatal(err)
					}
				}
				told(b, ctx, goInt(ctx, a, 0))
			})
			b.Run("call", func(b *testing.B) {
				timed(b, func(i int) { told(b, ctx, goInt(ctx, a, i)) })
			})
			b.Run("call-with-retries", func(b *testing.B) {
				timed(b, func(i int) { told(b, ctx, goInt(ctx, again, i)) })
			})
			b.Run("reference-travels", func(b *testing.B) {
				timed(b, func(i int) {
					r := goInt(ctx, a, i)
					told(b, ctx, seatInt.Go(ctx, next, r))
					r.Release()
				})
			})
		})
	}
}
