package registertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home"
	"mobula/internal/home/register"
	"mobula/internal/ids"
)

// Conform tries a register that is empty. lose has the answer to its next write be lost, be it made; nil: it writes nowhere.
func Conform(t *testing.T, r home.Register, lose func()) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := func(c register.Claim) register.Row {
		t.Helper()
		row, err := r.Begin(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		return row
	}

	// Many at once get homes of their own, each once, however often they ask.
	const nodes = 8
	rows := make([]register.Row, nodes)
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			c := register.Claim{Identity: fmt.Sprint("node ", i), Life: fmt.Sprint("life ", i)}
			first, err := r.Begin(ctx, c)
			again, err2 := r.Begin(ctx, c)
			if err = errors.Join(err, err2); err != nil || first != again {
				t.Errorf("node %d: %+v, then %+v, %v", i, first, again, err)
			}
			rows[i] = first
		})
	}
	all.Wait()
	seen := make(map[ids.Home]int)
	for i, row := range rows {
		if other, dup := seen[row.Home]; dup || row.Epoch != 1 {
			t.Errorf("nodes %d and %d have %+v", i, other, row)
		}
		seen[row.Home] = i
	}

	// A life follows a life.
	second := begin(register.Claim{Identity: "node 0", Life: "second", Last: &rows[0]})
	if second.Home != rows[0].Home || second.Epoch != 2 {
		t.Errorf("the second life is %+v", second)
	}
	// A copy of the directory, from before that, is told.
	if got, err := r.Begin(ctx, register.Claim{Identity: "node 0", Life: "copy", Last: &rows[0]}); !errors.Is(err, register.ErrCopied) {
		t.Errorf("a copy gets %+v, %v", got, err)
	}
	// Of two copies that begin at once one is told.
	errs2 := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := r.Begin(ctx, register.Claim{Identity: "node 0", Life: fmt.Sprint("at once ", i), Last: &second})
			errs2 <- err
		}()
	}
	if a, b := <-errs2, <-errs2; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), register.ErrCopied) {
		t.Errorf("of two copies: %v, %v", a, b)
	}
	// Nobody has another's home.
	if got, err := r.Begin(ctx, register.Claim{Identity: "node 1", Life: "thief", Last: &register.Row{Home: rows[2].Home, Identity: "node 1", Epoch: 9}}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("another's home: %+v, %v", got, err)
	}
	// A directory that was its own control plane brings its home, which then nobody else gets.
	brought := register.Row{Home: 1000, Identity: "alone", Epoch: 77}
	if got := begin(register.Claim{Identity: "alone", Life: "joins", Last: &brought}); got.Home != 1000 || got.Epoch != 78 {
		t.Errorf("it is %+v", got)
	}
	if got := begin(register.Claim{Identity: "late", Life: "late"}); got.Home == 1000 || seen[got.Home] != 0 || got.Epoch != 1 {
		t.Errorf("a new node gets %+v", got)
	}
	if lose == nil {
		return
	}
	// A write of whose fate nobody was told is looked up: the life has begun, once.
	lose()
	first := begin(register.Claim{Identity: "unheard", Life: "first"})
	lose()
	if next := begin(register.Claim{Identity: "unheard", Life: "next", Last: &first}); first.Epoch != 1 || next.Epoch != 2 || next.Home != first.Home {
		t.Errorf("without answers its lives are %+v and %+v", first, next)
	}
}
