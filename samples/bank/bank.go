package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mobula"
	"mobula/chaos"
)

// Account is an actor. Its state is its journal: a line for each entry.
type Account struct {
	journal string
	balance int
	made    map[string]bool
}

var (
	Accounts = mobula.RegisterActor1("bank/account", Open, mobula.MaxRestarts(-1), mobula.Resources{CPU: mobula.NoCPU})
	Book     = mobula.RegisterMethod2(Accounts, "Book", (*Account).Book)
	Balance  = mobula.RegisterMethod0(Accounts, "Balance", (*Account).Balance)
	Transfer = mobula.Register4("bank/transfer", transfer, mobula.Retries(-1))
)

// ErrOverdrawn is the error of a debit that an account cannot cover.
var ErrOverdrawn = errors.New("the account would be overdrawn")

func init() { mobula.RegisterError("bank/overdrawn", ErrOverdrawn) }

// Open reads the journal: after a crash the account has its old state.
func Open(_ context.Context, journal string) (*Account, error) {
	a := &Account{journal: journal, made: make(map[string]bool)}
	text, err := os.ReadFile(journal)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var entry string
		var by int
		if _, err := fmt.Sscanf(line, "%s %d\n", &entry, &by); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", journal, line, err)
		}
		a.apply(entry, by)
	}
	return a, nil
}

// Book makes an entry, once: a caller that got no answer may call again.
func (a *Account) Book(ctx context.Context, entry string, by int) (int, error) {
	if a.made[entry] {
		return a.balance, nil
	}
	if a.balance+by < 0 {
		return a.balance, ErrOverdrawn
	}
	f, err := os.OpenFile(a.journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return a.balance, err
	}
	_, err = fmt.Fprintf(f, "%s %d\n", entry, by)
	if err = errors.Join(err, f.Close()); err != nil {
		return a.balance, err
	}
	chaos.Point(ctx, "bank/written") // the journal knows, the actor does not
	a.apply(entry, by)
	return a.balance, nil
}

func (a *Account) apply(entry string, by int) {
	a.made[entry] = true
	a.balance += by
}

// Balance is what the account has.
func (a *Account) Balance(context.Context) (int, error) { return a.balance, nil }

// transfer moves a sum under the name of an entry. It may be run again from the start at any point.
func transfer(ctx context.Context, entry, from, to string, sum int) (mobula.Void, error) {
	if err := book(ctx, from, entry+"/out", -sum); err != nil {
		return mobula.Void{}, err
	}
	chaos.Point(ctx, "bank/between") // the sum is nowhere
	return mobula.Void{}, book(ctx, to, entry+"/in", sum)
}

// book makes an entry in the account of a name.
func book(ctx context.Context, account, entry string, by int) error {
	a, err := mobula.GetActor[Account](ctx, "bank", account)
	if err == nil {
		_, err = Book.Go(ctx, a, mobula.V(entry), mobula.V(by)).Get(ctx)
	}
	return err
}

// found opens accounts, with their journals in dir, each with an opening balance.
func found(ctx context.Context, dir string, accounts, opening int) error {
	for i := range accounts {
		if _, err := Accounts.Spawn(ctx, mobula.V(filepath.Join(dir, name(i))), mobula.Named("bank", name(i)), mobula.Detached(), mobula.MaxTaskRetries(-1)); err != nil {
			return err
		}
		if err := book(ctx, name(i), "opening", opening); err != nil {
			return err
		}
	}
	return nil
}

func name(i int) string { return fmt.Sprintf("account-%d", i) }

// balances asks every account.
func balances(ctx context.Context, accounts int) ([]int, error) {
	refs := make([]mobula.Ref[int], accounts)
	for i := range refs {
		a, err := mobula.GetActor[Account](ctx, "bank", name(i))
		if err != nil {
			return nil, err
		}
		refs[i] = Balance.Go(ctx, a)
	}
	return mobula.GetAll(ctx, refs)
}
