package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", filepath.Join("..", "..", ".."), "the tree whose texts these are")
	flag.Parse()
	if err := run(*root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// errFound says that findings were printed.
var errFound = errors.New("the texts are not in order")

func run(root string, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		found, err := check(root, os.Stderr)
		if err != nil {
			return err
		}
		for _, f := range found {
			fmt.Println(f)
		}
		if len(found) > 0 {
			return errFound
		}
		return nil
	case len(args) == 2 && args[0] == "site":
		return site(root, args[1])
	}
	return fmt.Errorf("%q: want check, or site and a folder", args)
}
