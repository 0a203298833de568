package mobula_test

import (
	"context"
	"errors"
	"fmt"

	"mobula"
)

// Errors that cross processes are registered, with the names that every binary has for them.
var errEmpty = errors.New("nothing to divide")

type overdraft struct {
	Account string
	Missing int
}

func (o *overdraft) Error() string { return fmt.Sprintf("%s is %d short", o.Account, o.Missing) }

func init() {
	mobula.RegisterError("example/empty", errEmpty)
	mobula.RegisterErrorType[*overdraft]("example/overdraft")
}

var (
	share = mobula.Register2("example/share", func(_ context.Context, sum, among int) (int, error) {
		if sum == 0 {
			return 0, fmt.Errorf("share among %d: %w", among, errEmpty)
		}
		return sum / among, nil // panics for 0
	})
	withdraw = mobula.Register2("example/withdraw", func(_ context.Context, account string, amount int) (int, error) {
		return 0, &overdraft{Account: account, Missing: amount}
	})
)

// A TaskError says what a task failed with, and where.
func ExampleTaskError() {
	_, ctx, done := start()
	defer done()

	_, err := share.Go(ctx, mobula.V(1), mobula.V(0)).Get(ctx)
	var te *mobula.TaskError
	if errors.As(err, &te) {
		fmt.Println(te.Name, te.Stack != "", errors.Is(err, mobula.ErrPanic))
	}
	// A task that takes a failed result as its argument fails with the same error.
	_, err = add.Go(ctx, share.Go(ctx, mobula.V(1), mobula.V(0)), mobula.V(1)).Get(ctx)
	fmt.Println(errors.Is(err, mobula.ErrPanic))
	// Output:
	// example/share true true
	// true
}

// The caller can match the program's own sentinel.
func ExampleRegisterError() {
	// func init() { mobula.RegisterError("example/empty", errEmpty) }
	_, ctx, done := start()
	defer done()

	_, err := share.Go(ctx, mobula.V(0), mobula.V(3)).Get(ctx)
	fmt.Println(errors.Is(err, errEmpty), errors.Is(err, mobula.ErrTaskFailed))
	// Output: true true
}

// The caller gets the program's own error type, with its fields.
func ExampleRegisterErrorType() {
	// func init() { mobula.RegisterErrorType[*overdraft]("example/overdraft") }
	_, ctx, done := start()
	defer done()

	_, err := withdraw.Go(ctx, mobula.V("savings"), mobula.V(7)).Get(ctx)
	var o *overdraft
	fmt.Println(errors.As(err, &o), o.Account, o.Missing)
	// Output: true savings 7
}
