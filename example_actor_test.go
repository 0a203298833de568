package mobula_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobula"
)

// counter is an actor: a value that lives in one process and handles one call after another.
type counter struct{ n int }

func (c *counter) Inc(_ context.Context, by int) (int, error) { c.n += by; return c.n, nil }

var (
	counters = mobula.RegisterActor1("example/counter", func(_ context.Context, from int) (*counter, error) { return &counter{from}, nil })
	inc      = mobula.RegisterMethod1(counters, "Inc", (*counter).Inc)
)

// One caller's calls of one actor run in order.
func ExampleRegisterActor1() {
	_, ctx, done := start()
	defer done()

	a, err := counters.Spawn(ctx, mobula.V(10))
	if err != nil {
		fmt.Println(err)
		return
	}
	inc.Go(ctx, a, mobula.V(1))
	fmt.Println(inc.Go(ctx, a, mobula.V(2)).Get(ctx))
	// Output: 13 <nil>
}

// journal has a close hook.
type journal struct{ lines int }

func (j *journal) Write(_ context.Context, _ string) (int, error) { j.lines++; return j.lines, nil }

func (j *journal) Close() error { fmt.Println("closed with", j.lines, "line"); return nil }

var (
	journals = mobula.RegisterActor0("example/journal", func(context.Context) (*journal, error) { return &journal{}, nil })
	write    = mobula.RegisterMethod1(journals, "Write", (*journal).Write)
)

// Stop lets the calls before it run, and then calls the close hook.
func ExampleActorRef_Stop() {
	_, ctx, done := start()
	defer done()

	a, err := journals.Spawn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := write.Tell(ctx, a, mobula.V("a line")); err != nil {
		fmt.Println(err)
	}
	if err := a.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	_, err = write.Go(ctx, a, mobula.V("late")).Get(ctx)
	fmt.Println(errors.Is(err, mobula.ErrActorDied))
	// Output:
	// closed with 1 line
	// true
}

// Other programs find a named actor, and there is only one of a name.
func ExampleGetActor() {
	_, ctx, done := start()
	defer done()

	a, err := counters.Spawn(ctx, mobula.V(0), mobula.Named("", "visits"))
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := mobula.GetActor[counter](ctx, "", "visits")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(inc.Go(ctx, found, mobula.V(1)).Get(ctx))

	_, err = counters.Spawn(ctx, mobula.V(0), mobula.Named("", "visits"))
	fmt.Println(errors.Is(err, mobula.ErrNameTaken))
	same, err := counters.Spawn(ctx, mobula.V(0), mobula.Named("", "visits"), mobula.GetIfExists())
	fmt.Println(same.ID() == a.ID(), err)
	// Output:
	// 1 <nil>
	// true
	// true <nil>
}

// Tell calls without a result. It is in order with the caller's other calls.
func ExampleMethod1_Tell() {
	_, ctx, done := start()
	defer done()

	a, err := counters.Spawn(ctx, mobula.V(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if err := inc.Tell(ctx, a, mobula.V(1)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(inc.Go(ctx, a, mobula.V(0)).Get(ctx))
	// Output: 3 <nil>
}

// An actor's death, as seen from outside.
func ExampleWatch() {
	_, ctx, done := start()
	defer done()

	a, err := counters.Spawn(ctx, mobula.V(0))
	if err == nil {
		err = a.Ready(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range mobula.Watch(ctx, a) {
		fmt.Println(ev.Phase, err)
		if ev.Phase == mobula.ActorAlive {
			_ = a.Kill(ctx)
		}
	}
	// Output:
	// alive <nil>
	// dead <nil>
}

// clock is an actor with a timer: its ticks are calls of its own, between the others.
type clock struct {
	ticks int
	three chan struct{} // closed at the third
}

func (c *clock) Tick(context.Context) (mobula.Void, error) {
	if c.ticks++; c.ticks == 3 {
		close(c.three)
	}
	return mobula.Void{}, nil
}

var (
	clocks = mobula.RegisterActor0("example/clock", func(ctx context.Context) (*clock, error) {
		_, err := tick.Every(ctx, time.Millisecond)
		return &clock{three: thirdTick}, err
	})
	tick mobula.Method0[clock, mobula.Void] // set below: the constructor uses it

	thirdTick = make(chan struct{})
)

func init() { tick = mobula.RegisterMethod0(clocks, "Tick", (*clock).Tick) }

func ExampleMethod0_Every() {
	_, ctx, done := start()
	defer done()

	thirdTick = make(chan struct{})
	a, err := clocks.Spawn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	<-thirdTick
	fmt.Println("three ticks")
	if err := a.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: three ticks
}

// friend is an actor that gives others a reference to itself.
type friend struct{ me mobula.ActorRef[friend] }

func (f *friend) Me(context.Context) (mobula.ActorRef[friend], error) { return f.me, nil }

var (
	friends = mobula.RegisterActor0("example/friend", func(ctx context.Context) (*friend, error) {
		me, err := mobula.Self[friend](ctx)
		return &friend{me}, err
	})
	friendMe = mobula.RegisterMethod0(friends, "Me", (*friend).Me)
)

func ExampleSelf() {
	_, ctx, done := start()
	defer done()

	a, err := friends.Spawn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	me, err := friendMe.Go(ctx, a).Get(ctx)
	fmt.Println(me.ID() == a.ID(), err)
	// Output: true <nil>
}
