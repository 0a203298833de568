package errs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestEveryCodeHasItsSentinel(t *testing.T) {
	for c := CodeTaskFailed; c < codeEnd; c++ {
		if c == CodeUser {
			continue
		}
		s := table[c].sentinel
		if s == nil {
			t.Fatalf("code %d has no sentinel", c)
		}
		if !errors.Is(New(c, "x"), s) {
			t.Errorf("code %d does not match %v", c, s)
		}
		if got := From(fmt.Errorf("in f: %w", s)); !errors.Is(got, s) {
			t.Errorf("%v is lost when wrapped: %#v", s, got)
		}
	}
}

func TestBroaderAndStandardSentinels(t *testing.T) {
	for _, c := range []struct {
		code Code
		want error
	}{
		{CodeObjectFreed, ErrObjectLost}, {CodeReconstructionFailed, ErrObjectLost}, {CodeOwnerDied, ErrObjectLost},
		{CodeFetchTimedOut, ErrObjectLost}, {CodeGetTimeout, context.DeadlineExceeded}, {CodeCancelled, context.Canceled},
		{CodeVersion, ErrProtocol},
	} {
		if !errors.Is(New(c.code, "x"), c.want) {
			t.Errorf("code %d is not %v", c.code, c.want)
		}
	}
	if errors.Is(New(CodeObjectLost, "x"), ErrObjectFreed) {
		t.Error("a lost object is not a freed one")
	}
}

var errNoUser, errTwice = errors.New("no such user"), errors.New("a")

func init() { RegisterSentinel("test/no-user", errNoUser) }

func TestFromKeepsChainsJoinsAndUserSentinels(t *testing.T) {
	mine := errNoUser
	err := fmt.Errorf("lookup: %w", errors.Join(fmt.Errorf("a: %w", mine), fmt.Errorf("b: %w", ErrStoreFull), io.EOF))
	got := From(err)
	for _, want := range []error{mine, ErrStoreFull} {
		if !errors.Is(got, want) {
			t.Errorf("%v is lost", want)
		}
	}
	if got.Error() != err.Error() {
		t.Errorf("message changed: %q, was %q", got, err)
	}
	if From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
}

type unequal struct{ list []int }

func (u unequal) Error() string { return "unequal"[:7+len(u.list)] }

func TestSentinelsThatCannotWorkAreRefusedAtOnce(t *testing.T) {
	RegisterSentinel("test/twice", errTwice)
	RegisterSentinel("test/twice", errTwice) // the same again does no harm
	for name, sentinel := range map[string]error{"test/twice": errors.New("b"), "test/unequal": unequal{}, "test/nil": nil} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered", name)
				}
			}()
			RegisterSentinel(name, sentinel)
		}()
	}
	if got := From(unequal{}); got.Code != CodeUnknown || got.Msg != "unequal" { // must not panic
		t.Errorf("got %+v", got)
	}
}
