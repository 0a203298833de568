package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"mobula"
)

func main() {
	accounts := flag.Int("accounts", 4, "how many accounts there are")
	transfers := flag.Int("transfers", 100, "how many transfers are made")
	flag.Parse()
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error {
		dir, err := os.MkdirTemp("", "bank-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := found(ctx, dir, *accounts, 100); err != nil {
			return err
		}
		if err := trade(ctx, *accounts, *transfers); err != nil {
			return err
		}
		got, err := balances(ctx, *accounts)
		fmt.Println(got)
		return err
	})
}

// trade makes transfers from each account to the next. A refused debit is not an error.
func trade(ctx context.Context, accounts, transfers int) error {
	refs := make([]mobula.Ref[mobula.Void], transfers)
	for i := range refs {
		refs[i] = Transfer.Go(ctx, mobula.V(fmt.Sprint("t", i)), mobula.V(name(i%accounts)), mobula.V(name((i+1)%accounts)), mobula.V(1+i%7))
	}
	for _, r := range refs {
		if _, err := r.Get(ctx); err != nil && !errors.Is(err, ErrOverdrawn) {
			return err
		}
	}
	return nil
}
