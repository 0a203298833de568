package guard

import (
	"os"
	"strings"
)

// Variable is the environment variable that a worker's processes inherit: marks, separated by colons.
const Variable = "MOBULA_CHILD_OF"

// A mark is node.life.worker: a guard kills processes of its own life of the node, and not of the next, which may have begun
// already.

// marks is the variable of a worker: the marks of this process, which may be a worker's child itself, and the worker's
// own.
func marks(life, worker string) string {
	if outer := os.Getenv(Variable); outer != "" {
		return outer + ":" + life + "." + worker
	}
	return life + "." + worker
}

// below matches marks below a node, or below a life of a node.
func below(above string) func(mark string) bool {
	return func(mark string) bool { return strings.HasPrefix(mark, above+".") }
}

// marksIn finds the marks in an environment as /proc shows it.
func marksIn(environ string) []string {
	for kv := range strings.SplitSeq(environ, "\x00") {
		if v, ok := strings.CutPrefix(kv, Variable+"="); ok {
			return strings.Split(v, ":")
		}
	}
	return nil
}
