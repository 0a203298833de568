//go:build !invariants

package api

// A build with invariants gives copies, so that a slice kept too long faults.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"mobula"
	"mobula/mobulatest"
)

// where tells what the process has mapped at an address: device, inode and name of the file.
func where(b []byte) (string, error) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil && from <= at && at < to {
			return strings.Join(strings.Fields(lines.Text())[3:], " "), nil
		}
	}
	return "", fmt.Errorf("%#x is not mapped", at)
}

func (k *keeper) Where(_ context.Context, b []byte) (string, error) { return where(b) }

var (
	e2eWhere    = mobula.Register1("e2e/api/where", func(_ context.Context, b []byte) (string, error) { return where(b) })
	keeperWhere = mobula.RegisterMethod1(keepers, "Where", (*keeper).Where)
)

// A message between actors of a node carries where the bytes are: every process that is
// given them reads the same pages of the same file.
func TestO18ArgumentsAreReadInPlace(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		b, err := mobula.Create[byte](ctx, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		want, err := where(b.Slice())
		if err != nil || !strings.Contains(want, "mobula") {
			t.Fatalf("the driver writes it in %q, %v", want, err)
		}
		r, err := b.Put()
		if err != nil {
			t.Fatal(err)
		}
		a, err := keepers.Spawn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		get(ctx, t, e2eWhere.Go(ctx, r), want)
		get(ctx, t, keeperWhere.Go(ctx, a, r), want)
		if own, err := e2eWhere.Go(ctx, mobula.V(make([]byte, 1<<10))).Get(ctx); err != nil || own == want {
			t.Errorf("a small argument lies in %q, %v: the test shows nothing", own, err)
		}
	})
}

// A view that is open when its cluster is closed gives no memory that is not the process' own any more, nor keeps the
// object's memory from others.
func TestAViewEndsWithItsCluster(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(1))
	second, err := mobula.Connect(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	ctx := second.Context(t.Context())
	r, err := mobula.Put(ctx, make([]byte, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := v.Value(); !errors.Is(err, mobula.ErrViewClosed) {
		t.Errorf("the value of %d bytes, %v", len(b), err)
	}
	if _, err := v.Size(); !errors.Is(err, mobula.ErrViewClosed) {
		t.Error(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
