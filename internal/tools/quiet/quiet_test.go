package quiet

import (
	"errors"
	"strings"
	"testing"
)

func TestOneRunHoldsTheMachine(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	release, err := Hold("a benchmark of long name")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hold("a gate"); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "a benchmark of long name runs") {
		t.Error(err)
	}
	release()
	release, err = Hold("a gate")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := Hold("another"); err == nil || !strings.Contains(err.Error(), ": a gate runs") {
		t.Error(err)
	}
}
