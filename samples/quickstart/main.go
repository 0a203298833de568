package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"mobula"
)

// Functions are registered at package level, under a name that stays the same.
var (
	Add = mobula.Register2("quickstart/add", func(_ context.Context, a, b float64) (float64, error) { return a + b, nil })

	// DivMod has two results, each an object of its own.
	DivMod = mobula.Register2x2("quickstart/divmod", func(_ context.Context, a, b int) (int, int, error) {
		if b == 0 {
			return 0, 0, ErrZero
		}
		return a / b, a % b, nil
	})

	// Words yields a stream: its consumer has the first word before the last one exists.
	Words = mobula.RegisterStream1("quickstart/words", func(_ context.Context, text string) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for w := range strings.FieldsSeq(text) {
				if !yield(w, nil) {
					return
				}
			}
		}
	})
)

// ErrZero is the program's own error; since it is registered, the caller can match it.
var ErrZero = errors.New("division by zero")

func init() { mobula.RegisterError("quickstart/zero", ErrZero) }

// Greeter is an actor: a value that lives in one process and handles one call after another.
type Greeter struct {
	greeting string
	served   int
}

// NewGreeter constructs the actor, in its process.
func NewGreeter(_ context.Context, greeting string) (*Greeter, error) {
	return &Greeter{greeting: greeting}, nil
}

// Greet greets.
func (g *Greeter) Greet(_ context.Context, name string) (string, error) {
	g.served++
	return fmt.Sprintf("%s, %s! (%d served)", g.greeting, name, g.served), nil
}

// The actor's type and method.
var (
	GreeterType = mobula.RegisterActor1("quickstart/greeter", NewGreeter)
	Greet       = mobula.RegisterMethod1(GreeterType, "Greet", (*Greeter).Greet)
)

func main() {
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error {
		return run(ctx, func(a ...any) { fmt.Println(a...) })
	})
}

func run(ctx context.Context, say func(a ...any)) error {
	// A call does not wait. Its result can be an argument of another call.
	x := Add.Go(ctx, mobula.V(1.0), mobula.V(2.0))
	y := Add.Go(ctx, x, mobula.V(3.0), mobula.Retries(5))
	sum, err := y.Get(ctx)
	if err != nil {
		return err
	}
	say("1 + 2 + 3 =", sum)

	q, r := DivMod.Go(ctx, mobula.V(17), mobula.V(5))
	both, err := mobula.GetAll(ctx, []mobula.Ref[int]{q, r})
	if err != nil {
		return err
	}
	say("17 / 5 =", both[0], "rest", both[1])

	// The error arrives as the same error.
	q, _ = DivMod.Go(ctx, mobula.V(1), mobula.V(0))
	if _, err := q.Get(ctx); errors.Is(err, ErrZero) {
		say("1 / 0:", ErrZero)
	} else {
		return fmt.Errorf("1 / 0 gave %v", err)
	}

	for word, err := range Words.Go(ctx, mobula.V("one by one")) {
		if err != nil {
			return err
		}
		w, err := word.Get(ctx)
		if err != nil {
			return err
		}
		say("word:", w)
	}

	g, err := GreeterType.Spawn(ctx, mobula.V("Hello"))
	if err != nil {
		return err
	}
	for _, name := range []string{"Ada", "Grace"} {
		text, err := Greet.Go(ctx, g, mobula.V(name)).Get(ctx)
		if err != nil {
			return err
		}
		say(text)
	}
	return nil
}
