package shell

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogsAreRareAndCounted(t *testing.T) {
	var out bytes.Buffer
	refused := 0
	now := time.Unix(1000, 0)
	l := newLogs(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), func() { refused++ }, func(string) {})
	l.now = func() time.Time { return now }
	to := l.logger()
	for i := range 5 {
		to.Printf("[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt from=10.0.0.%d", i)
		to.Printf("[DEBUG] memberlist: Stream connection from=10.0.0.%d", i)
	}
	now = now.Add(logEvery)
	to.Printf("[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt from=10.0.0.9")
	to.Printf("[WARN] memberlist: Refuting a suspect message (from: 3.1)")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if refused != 6 || len(lines) != 4 {
		t.Fatalf("%d refused, %d lines:\n%s", refused, len(lines), out.String())
	}
	for i, want := range []string{"level=WARN", "level=DEBUG", "left_out=4", "level=INFO"} {
		if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "lib=memberlist") {
			t.Errorf("line %d has no %s: %s", i, want, lines[i])
		}
	}
	for i := range 10 * maxLogKind {
		fmt.Fprintf(l, "[INFO] memberlist: %s\n", strings.Repeat("x", i))
	}
	if len(l.kinds) > maxLogKind+1 {
		t.Errorf("%d kinds are told apart", len(l.kinds))
	}
}
