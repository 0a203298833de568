package guard

import (
	"os"
	"strings"
)

// Variable is the environment variable that a worker's processes inherit: marks, with a colon between.
const Variable = "MOBULA_CHILD_OF"

// A mark is node.life.worker: a guard kills what is of its life of the node, and not of the next, which may have begun already.

// marks is the variable of a worker of a life: those of this process, which may be a worker's child itself, and its own.
func marks(life, worker string) string {
	if outer := os.Getenv(Variable); outer != "" {
		return outer + ":" + life + "." + worker
	}
	return life + "." + worker
}

// below tells of marks of what is below a node, or a life of one.
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
