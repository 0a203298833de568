package faults

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"mobula"
	"mobula/actors"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// account is an actor that counts, by itself and by way of another.
type account struct{ sum int }

func (a *account) Add(_ context.Context, n int) (int, error) {
	a.sum += n
	return a.sum, nil
}

func (a *account) Pass(ctx context.Context, to mobula.ActorRef[account], n int) ([]mobula.Ref[int], error) {
	return []mobula.Ref[int]{accountAdd.Go(ctx, to, mobula.V(n))}, nil
}

// Steps streams n numbers, every third with many bytes.
func (a *account) Steps(_ context.Context, n int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range n {
			page := make([]byte, 8+btoi(i%3 == 2)*150_000)
			binary.LittleEndian.PutUint64(page, uint64(a.sum+i))
			if !yield(page, nil) {
				return
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

var (
	accounts    = mobula.RegisterActor0("e2e/account", func(context.Context) (*account, error) { return &account{}, nil })
	accountAdd  = mobula.RegisterMethod1(accounts, "Add", (*account).Add)
	accountPass = mobula.RegisterMethod2(accounts, "Pass", (*account).Pass)
	accountStep = mobula.RegisterStreamMethod1(accounts, "Steps", (*account).Steps)
	echo        = mobula.Register1("e2e/echo", func(_ context.Context, n int) (int, error) { return n, nil })
)

// The owner of the job is made anew again and again while calls go straight, their references leave, and actors call actors: each call has its own result, once.
func TestTheOwnerCrashesUnderStraightCalls(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	r := testkit.Rand(t)
	faults := &actors.Faults{}
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 2, Faults: faults})
	const callers = 4
	var calls atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if err := straightLoad(ctx, &calls, stop); err != nil {
				t.Error(err)
			}
		})
	}
	owner := func() (c actors.Info) {
		for _, x := range n.Components() {
			if x.Kind == "owner" {
				c = x
			}
		}
		return c
	}
	for crash := range harness.Size(12, 100) {
		before := restarts(n, owner().Path)
		remove := faults.Inject(actors.Fault{Kind: "owner", Nth: 1 + r.IntN(60), Action: actors.PanicMidStep})
		harness.Eventually(t, ctx, "the owner crashed and was restarted", func() bool { return restarts(n, owner().Path) > before })
		remove()
		if t.Failed() {
			t.Logf("after %d crashes", crash+1)
			break
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d calls", calls.Load())
}

// straightLoad calls two actors of its own, and holds each result against what it must be.
func straightLoad(ctx context.Context, calls *atomic.Int64, stop chan struct{}) error {
	a, err := accounts.Spawn(ctx)
	if err != nil {
		return err
	}
	b, err := accounts.Spawn(ctx)
	if err != nil {
		return err
	}
	sum := 0
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		var refs []mobula.Ref[int]
		for i := range 20 {
			ref := accountAdd.Go(ctx, a, mobula.V(i))
			if i%5 == 0 {
				ref = echo.Go(ctx, ref) // it leaves
			}
			refs = append(refs, ref)
		}
		for i, ref := range refs {
			sum += i
			if got, err := ref.Get(ctx); err != nil || got != sum {
				return fmt.Errorf("call %d of a round came to %d, %w, want %d", i, got, err, sum)
			}
			ref.Release()
		}
		inner, err := accountPass.Go(ctx, b, mobula.V(a), mobula.V(1)).Get(ctx)
		if err != nil {
			return err
		}
		sum++
		if got, err := inner[0].Get(ctx); err != nil || got != sum {
			return fmt.Errorf("the call that an actor made came to %d, %w, want %d", got, err, sum)
		}
		inner[0].Release()
		i := 0
		for r, err := range accountStep.Go(ctx, a, mobula.V(9), mobula.Backpressure(2)) {
			if err != nil {
				return fmt.Errorf("item %d of a stream: %w", i, err)
			}
			b, err := r.Get(ctx)
			if err != nil || int(binary.LittleEndian.Uint64(b)) != sum+i {
				return fmt.Errorf("item %d of a stream of %d has %d bytes, %w", i, sum, len(b), err)
			}
			r.Release()
			i++
		}
		if i != 9 {
			return fmt.Errorf("a stream of 9 items has %d", i)
		}
		calls.Add(23)
	}
}
