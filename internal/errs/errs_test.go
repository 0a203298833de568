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

func TestFromKeepsChainsJoinsAndUserSentinels(t *testing.T) {
	mine := errors.New("no such user")
	RegisterSentinel("test/no-user", mine)
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
