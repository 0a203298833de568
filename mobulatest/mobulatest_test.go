package mobulatest

import (
	"context"
	"os"
	"testing"

	"mobula"
)

var add = mobula.Register2("mobulatest/add", func(_ context.Context, a, b int) (int, error) { return a + b, nil })

var pid = mobula.Register0("mobulatest/pid", func(context.Context) (int, error) { return os.Getpid(), nil })

func TestMain(m *testing.M) { Main(m) }

func TestARuntimeInOneLine(t *testing.T) {
	ctx := Context(t)
	if got, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx); err != nil || got != 3 {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := pid.Go(ctx).Get(ctx); err != nil || got != os.Getpid() {
		t.Errorf("the task ran in process %d, %v, want this one", got, err)
	}
}

func TestTasksInProcesses(t *testing.T) {
	c := Start(t, mobula.WithProcesses())
	ctx := c.Context(t.Context())
	if got, err := pid.Go(ctx).Get(ctx); err != nil || got == os.Getpid() {
		t.Errorf("the task ran in this process, %v", err)
	}
}

func TestOptionsOverrideThePackagesOwn(t *testing.T) {
	c := Start(t, mobula.WithStore(16<<20))
	s, err := c.Status(t.Context())
	if err != nil || s.Store.Limit != 16<<20 {
		t.Errorf("a store of %d bytes, %v", s.Store.Limit, err)
	}
}

func TestALeakIsFoundWhenTheLastRuntimeEnds(t *testing.T) {
	var l leakCheck
	a := l.begin()
	b := l.begin()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { <-stop; close(done) }()
	if err := l.end(a); err != nil {
		t.Errorf("another is open still: %v", err)
	}
	if err := l.end(b); err == nil {
		t.Error("the goroutine was not found")
	}
	close(stop)
	<-done
	if err := l.end(l.begin()); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}
