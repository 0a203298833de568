package api

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"mobula"
	"mobula/mobulatest"
)

// Rows of what a call costs between a program and the actors of its process, each with an int and with a struct of 100 bytes. With MOBULA_STRAIGHT_CALLS=0 in the environment
// calls go by the owner (decision 0038).

// parcel has 100 bytes.
type parcel struct {
	A, B, C, D, E, F, G, H, I, J, K, L int64
	M                                  int32
}

// seat is the actor of the rows.
type seat struct{ next mobula.ActorRef[seat] }

func (s *seat) Int(_ context.Context, n int) (int, error)               { return n + 1, nil }
func (s *seat) Parcel(_ context.Context, p parcel) (parcel, error)      { p.A++; return p, nil }
func (s *seat) Drop(context.Context, int) (mobula.Void, error)          { return mobula.Void{}, nil }
func (s *seat) DropParcel(context.Context, parcel) (mobula.Void, error) { return mobula.Void{}, nil }

func (s *seat) Follow(_ context.Context, next mobula.ActorRef[seat]) (mobula.Void, error) {
	s.next = next
	return mobula.Void{}, nil
}

// AskInt asks the next one so often.
func (s *seat) AskInt(ctx context.Context, n int) (int, error) {
	for i := range n {
		r := seatInt.Go(ctx, s.next, mobula.V(i))
		if got, err := r.Get(ctx); err != nil || got != i+1 {
			return got, err
		}
		r.Release()
	}
	return n, nil
}

func (s *seat) AskParcel(ctx context.Context, n int) (int, error) {
	for i := range n {
		r := seatParcel.Go(ctx, s.next, mobula.V(parcel{A: int64(i)}))
		if got, err := r.Get(ctx); err != nil || got.A != int64(i)+1 {
			return i, err
		}
		r.Release()
	}
	return n, nil
}

// over hears of tokens that have come to their end.
var over chan struct{}

func (s *seat) Token(ctx context.Context, left int) (mobula.Void, error) {
	if left == 0 {
		over <- struct{}{}
		return mobula.Void{}, nil
	}
	return mobula.Void{}, seatToken.Tell(ctx, s.next, mobula.V(left-1))
}

func (s *seat) TokenParcel(ctx context.Context, p parcel) (mobula.Void, error) {
	if p.A == 0 {
		over <- struct{}{}
		return mobula.Void{}, nil
	}
	p.A--
	return mobula.Void{}, seatTokenParcel.Tell(ctx, s.next, mobula.V(p))
}

var (
	seats           = mobula.RegisterActor0("e2e/seat", func(context.Context) (*seat, error) { return &seat{}, nil })
	seatInt         = mobula.RegisterMethod1(seats, "Int", (*seat).Int)
	seatParcel      = mobula.RegisterMethod1(seats, "Parcel", (*seat).Parcel)
	seatDrop        = mobula.RegisterMethod1(seats, "Drop", (*seat).Drop)
	seatDropParcel  = mobula.RegisterMethod1(seats, "DropParcel", (*seat).DropParcel)
	seatFollow      = mobula.RegisterMethod1(seats, "Follow", (*seat).Follow)
	seatAskInt      = mobula.RegisterMethod1(seats, "AskInt", (*seat).AskInt)
	seatAskParcel   = mobula.RegisterMethod1(seats, "AskParcel", (*seat).AskParcel)
	seatToken       mobula.Method1[seat, int, mobula.Void]
	seatTokenParcel mobula.Method1[seat, parcel, mobula.Void]
)

func init() { // they call themselves
	seatToken = mobula.RegisterMethod1(seats, "Token", (*seat).Token)
	seatTokenParcel = mobula.RegisterMethod1(seats, "TokenParcel", (*seat).TokenParcel)
}

// seated has so many actors, each of which follows the one before it; the last is the first one's.
func seated(b *testing.B, n int) (context.Context, []mobula.ActorRef[seat]) {
	ctx := mobulatest.Start(b, mobula.WithCPUs(2)).Context(b.Context())
	as := make([]mobula.ActorRef[seat], n)
	for i := range as {
		var err error
		if as[i], err = seats.Spawn(ctx); err != nil {
			b.Fatal(err)
		}
	}
	for i := range as {
		told(b, ctx, seatFollow.Go(ctx, as[i], mobula.V(as[(i+1)%n])))
	}
	b.ReportAllocs()
	b.ResetTimer()
	return ctx, as
}

func told[T any](b *testing.B, ctx context.Context, r mobula.Ref[T]) {
	if _, err := r.Get(ctx); err != nil {
		b.Fatal(err)
	}
	r.Release()
}

// row has a row measured with both values.
func row(b *testing.B, ofInt, ofParcel func(b *testing.B)) {
	b.Run("int", ofInt)
	b.Run("parcel", ofParcel)
}

// asks calls one after another, and tells how long half of them and 99 % took at most.
func asks[T any](b *testing.B, one func(ctx context.Context, a mobula.ActorRef[seat], i int) mobula.Ref[T]) {
	ctx, as := seated(b, 1)
	timed(b, func(i int) { told(b, ctx, one(ctx, as[0], i)) })
}

// timed does something one after another, and tells how long half of them and 99 % took at most.
func timed(b *testing.B, one func(i int)) {
	b.ReportAllocs()
	took := make([]time.Duration, b.N)
	for i := range b.N {
		begun := time.Now()
		one(i)
		took[i] = time.Since(begun)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2])/1e3, "p50-us")
	b.ReportMetric(float64(took[b.N*99/100])/1e3, "p99-us")
}

func goInt(ctx context.Context, a mobula.ActorRef[seat], i int) mobula.Ref[int] {
	return seatInt.Go(ctx, a, mobula.V(i))
}

func goParcel(ctx context.Context, a mobula.ActorRef[seat], i int) mobula.Ref[parcel] {
	return seatParcel.Go(ctx, a, mobula.V(parcel{A: int64(i)}))
}

// BenchmarkAsk is one call after another.
func BenchmarkAsk(b *testing.B) {
	row(b, func(b *testing.B) { asks(b, goInt) }, func(b *testing.B) { asks(b, goParcel) })
}

// BenchmarkActorAsks is an actor that asks another.
func BenchmarkActorAsks(b *testing.B) {
	by := func(m mobula.Method1[seat, int, int]) func(b *testing.B) {
		return func(b *testing.B) {
			ctx, as := seated(b, 2)
			told(b, ctx, m.Go(ctx, as[0], mobula.V(b.N)))
		}
	}
	row(b, by(seatAskInt), by(seatAskParcel))
}

// BenchmarkPairs is 500 actors that each ask another.
func BenchmarkPairs(b *testing.B) {
	by := func(m mobula.Method1[seat, int, int]) func(b *testing.B) {
		return func(b *testing.B) {
			ctx, as := seated(b, 1000)
			var rs []mobula.Ref[int]
			for i := range 500 {
				rs = append(rs, m.Go(ctx, as[2*i], mobula.V(b.N/500+1)))
			}
			for _, r := range rs {
				told(b, ctx, r)
			}
		}
	}
	row(b, by(seatAskInt), by(seatAskParcel))
}

// BenchmarkTell is one sender of messages that nobody answers.
func BenchmarkTell(b *testing.B) {
	by := func(tell func(ctx context.Context, a mobula.ActorRef[seat], i int) error) func(b *testing.B) {
		return func(b *testing.B) {
			ctx, as := seated(b, 1)
			for i := range b.N {
				if err := tell(ctx, as[0], i); err != nil {
					b.Fatal(err)
				}
			}
			told(b, ctx, goInt(ctx, as[0], 0))
		}
	}
	row(b, by(func(ctx context.Context, a mobula.ActorRef[seat], i int) error {
		return seatDrop.Tell(ctx, a, mobula.V(i))
	}),
		by(func(ctx context.Context, a mobula.ActorRef[seat], i int) error {
			return seatDropParcel.Tell(ctx, a, mobula.V(parcel{A: int64(i)}))
		}))
}

// BenchmarkRing is 1,000 actors, each of which passes 100 tokens on; an operation is a hop.
func BenchmarkRing(b *testing.B) {
	by := func(tell func(ctx context.Context, a mobula.ActorRef[seat], left int) error) func(b *testing.B) {
		return func(b *testing.B) {
			over = make(chan struct{}, 100)
			ctx, as := seated(b, 1000)
			for i := range 100 {
				if err := tell(ctx, as[10*i], b.N/100); err != nil {
					b.Fatal(err)
				}
			}
			for range 100 {
				<-over
			}
		}
	}
	row(b, by(func(ctx context.Context, a mobula.ActorRef[seat], left int) error {
		return seatToken.Tell(ctx, a, mobula.V(left))
	}),
		by(func(ctx context.Context, a mobula.ActorRef[seat], left int) error {
			return seatTokenParcel.Tell(ctx, a, mobula.V(parcel{A: int64(left)}))
		}))
}

// outstanding has 1,000 calls under way at each moment.
func outstanding[T any](b *testing.B, one func(ctx context.Context, a mobula.ActorRef[seat], i int) mobula.Ref[T]) {
	ctx, as := seated(b, 1)
	rs := make([]mobula.Ref[T], min(1000, b.N))
	for i := range rs {
		rs[i] = one(ctx, as[0], i)
	}
	for i := len(rs); i < b.N; i++ {
		at := &rs[i%len(rs)]
		told(b, ctx, *at)
		*at = one(ctx, as[0], i)
	}
	for _, r := range rs {
		told(b, ctx, r)
	}
}

// BenchmarkOutstanding is a call with 1,000 others under way.
func BenchmarkOutstanding(b *testing.B) {
	row(b, func(b *testing.B) { outstanding(b, goInt) }, func(b *testing.B) { outstanding(b, goParcel) })
}

// BenchmarkSpawn is a spawn among 100,000 at once, up to when each has answered, and the bytes of heap that each takes while it lives.
func BenchmarkSpawn(b *testing.B) {
	const n = 100_000
	var took time.Duration
	var bytes uint64
	for range b.N {
		ctx := mobulatest.Start(b, mobula.WithCPUs(2)).Context(b.Context())
		before := heap()
		begun := time.Now()
		as := make([]mobula.ActorRef[seat], n)
		for i := range as {
			var err error
			if as[i], err = seats.Spawn(ctx); err != nil {
				b.Fatal(err)
			}
		}
		for _, a := range as {
			if err := a.Ready(ctx); err != nil {
				b.Fatal(err)
			}
		}
		took += time.Since(begun)
		bytes += heap() - before
		for _, a := range as { // here, since a node has no more than some seconds to close
			if err := a.Stop(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(took.Nanoseconds())/1e3/n/float64(b.N), "us/actor")
	b.ReportMetric(float64(bytes)/n/float64(b.N), "B/actor")
}

// heap is how many bytes live.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what was to be finalized at the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkFloor is an ask of two channels, and nothing else.
func BenchmarkFloor(b *testing.B) {
	ask, end := make(chan int, 1), make(chan int, 1)
	go func() {
		for n := range ask {
			end <- n + 1
		}
	}()
	for i := range b.N {
		ask <- i
		<-end
	}
	close(ask)
}
