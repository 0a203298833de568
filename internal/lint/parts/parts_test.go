package parts

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

type (
	low         struct{}
	high        struct{ Low *low }
	knowsHigher struct{ High *high }
	knowsAll    struct{ All *upside }
	good        struct {
		Low  *low
		High high
	}
	upside struct {
		KnowsAll    *knowsAll
		KnowsHigher *knowsHigher
		High        *high
	}
)

// keeper keeps what a check says.
type keeper struct {
	testing.TB
	said []string
}

func (k *keeper) Helper()                        {}
func (k *keeper) Errorf(format string, a ...any) { k.said = append(k.said, fmt.Sprintf(format, a...)) }

func TestInOrder(t *testing.T) {
	InOrder(t, reflect.TypeFor[good](), 2)
	k := &keeper{TB: t}
	InOrder(k, reflect.TypeFor[upside](), 4)
	want := []string{
		"parts.upside has 3 parts, at least 4 are expected",
		"parts.knowsAll knows all of parts.upside",
		"parts.knowsHigher knows parts.high, which is not below it",
	}
	if !slices.Equal(k.said, want) {
		t.Errorf("it says %q, want %q", k.said, want)
	}
}
