package errs

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

type overdraft struct {
	Account string
	Missing int64
	Err     error
}

func (e *overdraft) Error() string {
	return fmt.Sprintf("%s is %d short: %v", e.Account, e.Missing, e.Err)
}
func (e *overdraft) Unwrap() error { return e.Err }

type temporary struct{ After int }

func (e temporary) Error() string        { return "later" }
func (e temporary) Temporary() bool      { return true }
func (e temporary) Is(target error) bool { return target == io.ErrNoProgress }

type secret struct{ text string }

func (e *secret) Error() string                  { return e.text }
func (e *secret) MarshalBinary() ([]byte, error) { return []byte(e.text), nil }
func (e *secret) UnmarshalBinary(b []byte) error { e.text = string(b); return nil }

type lossy struct{ why string }

func (e *lossy) Error() string { return e.why }

func init() {
	RegisterType[*overdraft]("test/overdraft", nil)
	RegisterType[temporary]("test/temporary", nil)
	RegisterType[*secret]("test/secret", nil)
	RegisterType[*timed]("test/timed", nil)
}

func TestARegisteredTypeSurvives(t *testing.T) {
	err := fmt.Errorf("transfer: %w", &overdraft{"alice", 7, fmt.Errorf("books: %w", errors.Join(temporary{3}, ErrStoreFull, &secret{"s"}))})
	got := error(From(fmt.Errorf("task: %w", error(From(err))))) // over two borders
	if want := "task: " + err.Error(); got.Error() != want {
		t.Errorf("the text is %q, was %q", got, want)
	}
	var o *overdraft
	if !errors.As(got, &o) || o.Account != "alice" || o.Missing != 7 || !errors.Is(o.Err, ErrStoreFull) {
		t.Fatalf("got %+v", o)
	}
	var tmp temporary
	if !errors.As(got, &tmp) || tmp.After != 3 || !errors.Is(got, io.ErrNoProgress) {
		t.Errorf("got %+v, and its own Is is %v", tmp, errors.Is(got, io.ErrNoProgress))
	}
	var is interface{ Temporary() bool }
	if !errors.As(got, &is) || !is.Temporary() {
		t.Errorf("an interface that the type implements finds %v", is)
	}
	var s *secret
	if !errors.As(got, &s) || s.text != "s" {
		t.Errorf("a type that encodes itself: %+v", s)
	}
	var l *lossy
	if errors.As(error(From(&lossy{"x"})), &l) {
		t.Error("a type that is not registered came back")
	}
	var none *overdraft
	if e := From(fmt.Errorf("a nil one: %w", error(none2(none)))); e.Code != CodeUnknown {
		t.Errorf("a nil pointer became %+v", e)
	}
}

type nilSafe struct{ N int }

func (e *nilSafe) Error() string { return "nil safe" }

func none2(*overdraft) *nilSafe { return nil }

// timed has fields that CBOR has more than one form for.
type timed struct {
	At    time.Time
	Path  string // any bytes
	Addr  netip.Addr
	Count *big.Int
	Any   any
	Deep  *chain
}

type chain struct{ Next *chain }

func (e *timed) Error() string { return "timed" }

// The fields of an error arrive as those of other values do.
func TestFieldsOfAnErrorArriveAsTheyWere(t *testing.T) {
	in := &timed{
		At: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600)), Path: "a\xffb", Addr: netip.MustParseAddr("fe80::1%lo"),
		Count: new(big.Int).Lsh(big.NewInt(1), 100), Any: []any{int64(1), "x"},
	}
	for range 100 {
		in.Deep = &chain{in.Deep}
	}
	var out *timed
	if err := From(fmt.Errorf("it: %w", in)); !errors.As(error(err), &out) {
		t.Fatalf("%v has lost its type", err)
	}
	if !out.At.Equal(in.At) || out.At.Format(time.RFC3339Nano) != in.At.Format(time.RFC3339Nano) {
		t.Errorf("the time %v is %v", in.At, out.At)
	}
	out.At = in.At
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%+v is %+v", in, out)
	}
}

func TestTypesThatWouldLoseAreRefusedAtOnce(t *testing.T) {
	for name, register := range map[string]func(){
		"unexported": func() { RegisterType[*lossy]("test/lossy", nil) },
		"interface":  func() { RegisterType[error]("test/any", nil) },
		"own":        func() { RegisterType[*Error]("test/own", nil) },
		"taken":      func() { RegisterType[*nilSafe]("test/no-user", nil) },
		"another":    func() { RegisterType[*nilSafe]("test/overdraft", nil) },
		"again":      func() { RegisterType[*overdraft]("test/overdraft2", nil) },
		"sentinel":   func() { RegisterSentinel("test/overdraft", io.EOF) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered", name)
				}
			}()
			register()
		}()
	}
	RegisterType[*overdraft]("test/overdraft", nil) // the same again does no harm
}

func TestOnlyATasksErrorIsATaskError(t *testing.T) {
	of := func(c Code) *Error { return &Error{Code: c, Name: "f", Task: "1", Msg: "m"} }
	for c := range codeEnd {
		var te *shownTask
		err := error(of(c))
		want := c == CodeTaskFailed || c == CodeWorkerCrashed || c == CodeOutOfMemory || c == CodeDeadline || c == CodeCancelled || c == CodeReturnMismatch
		if got := errors.As(err, &te); got != want {
			t.Errorf("code %d (%v): %v", c, err, got)
			continue
		}
		if !want {
			continue
		}
		if te.Name != "f" || te.Task != "1" || te.Error() != err.Error() || !errors.Is(te, table[c].sentinel) || From(te) != err {
			t.Errorf("code %d: %+v", c, te)
		}
	}
	var te *shownTask
	if errors.As(error(New(CodeCancelled, "a get was")), &te) {
		t.Error("that of no task is one")
	}
}
