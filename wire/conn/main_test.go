package conn

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary be another process of a test: its value names the
// role in children, its argument is in childArg.
const (
	childEnv = "MOBULA_WIRE_TEST_CHILD"
	childArg = "MOBULA_WIRE_TEST_ARG"
)

var children = map[string]func(arg string) error{}

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := children[role](os.Getenv(childArg)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
