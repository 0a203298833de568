package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// numbers are those with a unit in the texts for developers, each with the place in the code that it comes from.
var numbers = []struct{ text, says, file, code string }{
	{"ARCHITECTURE.md", "production cores of up to 10,000 nodes", "benchmarks/sim/main.go", `"10,100,1000,10000"`},
	{"ARCHITECTURE.md", "10 % of the store", "internal/config/settings.go", `"store.inline-fraction", 0.1`},
	{"ARCHITECTURE.md", "options never | 1,024; 4,096 of them", "raylet/owner/leases_class.go", "maxClasses   = 1024"},
	{"ARCHITECTURE.md", "options never | 1,024; 4,096 of them", "raylet/owner/journal.go", "maxOptions = 4096"},
	{"ARCHITECTURE.md", "of at most 1 KiB of text each", "wire/value.go", "longOptions = 1 << 10"},
	{"ARCHITECTURE.md", "live callers, and 4,096", "raylet/owner/calls.go", "manyCallers = 4096"},
	{"ARCHITECTURE.md", "4,096 leases that are over", "raylet/cluster/lease.go", "maxPast = 4096"},
	{"ARCHITECTURE.md", "100,000 in memory", "telemetry/events/recorder.go", "cfg.Ring = 100_000"},
	{"ARCHITECTURE.md", "512 bytes of a failure's text", "telemetry/events/brief.go", "textMost = 512"},
	{"ARCHITECTURE.md", "4,096 of a job on a node", "python/mobula/_functions.py", "MOST_FILES = 4096"},
	{"ARCHITECTURE.md", "once they are too many | 1,000", "python/mobula/exceptions.py", "_MOST_COMBINED = 1000"},
	{"ARCHITECTURE.md", "`store.args-fraction` (70 %)", "internal/config/settings.go", `"store.args-fraction", 0.7`},
	{"ARCHITECTURE.md", "said nothing for 5 s", "internal/node/questions.go", "answerWithin = 5 * time.Second"},
	{"ARCHITECTURE.md", "looks for its node for 30 s", "internal/node/dial.go", "rejoinTimeout = 30 * time.Second"},
	{"ARCHITECTURE.md", "the next sample, at most 2 s later", "raylet/memmon/pace.go", "Slowest = 2 * time.Second"},
	{"ARCHITECTURE.md", "since its last 64 MiB", "raylet/owner/journal_compact.go", "2*j.cfg.CreditWindow"}, // of 32 MiB
	{"ARCHITECTURE.md", "its 65,536th message before the last", "wire/value.go", "Replayed = 64 << 10"},
	{"ARCHITECTURE.md", "`store/32`, 4 to 32 MiB", "internal/node/owners.go", "max(4<<20, int(min(store/32, oplog.DefaultReuse)))"},
	{"ARCHITECTURE.md", "4 to 32 MiB", "raylet/oplog/log.go", "DefaultReuse      = 32 << 20"},
	{"ARCHITECTURE.md", "actors that live, and 4,096", "internal/client/orders.go", "fewOrders = 4096"},
	{"ARCHITECTURE.md", "actors that live, and 4,096", "python/mobula/_client/context.py", "FEW_ORDERS = 4096"},
	{"ARCHITECTURE.md", "65,536 and 64 MiB", "internal/client/outbox_replay.go", "replayBytes    = 64 << 20"},
	{"ARCHITECTURE.md", "65,536 and 64 MiB", "python/mobula/_client/outbox.py", "_KEPT, _KEPT_BYTES = 64 << 10, 64 << 20"},
	{"ARCHITECTURE.md", "(credit, 32 MiB)", "raylet/owner/config.go", "def(&c.CreditWindow, 32<<20)"},
	{"ARCHITECTURE.md", "if it has called a task, else after 1 ms", "internal/client/gets_waiter.go", "blockedAfter = time.Millisecond"},
	{"ARCHITECTURE.md", "if it has called a task, else after 1 ms", "python/mobula/_client/client.py", "_SOON = 0.001"},
	{"ARCHITECTURE.md", "`store.inline-max` (100 KiB)", "wire/value.go", "InlineMax = 100 << 10"},
	{"ARCHITECTURE.md", "at most 30 s after its last call", "raylet/owner/config.go", "defTime(&c.StopGrace, 30*time.Second)"},
	{"ARCHITECTURE.md", "a Go hook has 5 s of that", "worker/main.go", "leaveGrace, closeGrace = 2 * time.Second, 5 * time.Second"},
	{"CONTRIBUTING.md", "`waiting.PATIENCE`, 90 s times", "internal/testkit/patience.go", "quietPatience = 90 * time.Second"},
	{"CONTRIBUTING.md", "`waiting.PATIENCE`, 90 s times", "python/tests/waiting.py", "90"},
	{"CONTRIBUTING.md", "in at most 20 minutes", "internal/tools/deep/parts.go", "limit = 20 * time.Minute"},
}

var numberWithUnit = regexp.MustCompile(`\b[0-9][0-9,.]* ?(?:[KMG]i?B|bytes|ms|us|s|seconds|minutes|%)(?:\W|$)|[0-9],[0-9]{3}`)

// A number in the texts is the one in the code.
func TestNumbersInTheTextsAreThoseOfTheCode(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, text := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		whole := strings.Join(strings.Fields(read(text)), " ") // a number may begin a line
		rest := whole
		for _, n := range numbers {
			if n.text != text {
				continue
			}
			if !strings.Contains(whole, n.says) {
				t.Errorf("%s no longer says %q", text, n.says)
			}
			if n.file != "" && !strings.Contains(read(n.file), n.code) {
				t.Errorf("%s says %q, and %s no longer has %q", text, n.says, n.file, n.code)
			}
			rest = strings.ReplaceAll(rest, n.says, "")
		}
		for _, at := range numberWithUnit.FindAllStringIndex(rest, -1) {
			t.Errorf("%s: where in the code does the number in %q come from? Add a row to numbers", text, rest[max(0, at[0]-40):min(len(rest), at[1]+20)])
		}
	}
}
