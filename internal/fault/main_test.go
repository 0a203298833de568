package fault

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets this binary be a process that asks a plan, see asks.
func TestMain(m *testing.M) {
	if path := os.Getenv(askEnv); path != "" {
		askMain(path)
		return
	}
	goleak.VerifyTestMain(m)
}

const askEnv = "MOBULA_TEST_ASK"

// asks starts a process that asks the plan about a place for ever, and writes a line after each answer.
func asks(t *testing.T, p *Plan) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), askEnv+"="+p.Address())
	return cmd
}
