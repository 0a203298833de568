package mobula

import (
	"testing"

	"go.uber.org/goleak"

	"mobula/internal/testkit"
)

func TestMain(m *testing.M) {
	if WorkerMain() {
		return
	}
	goleak.VerifyTestMain(testkit.Tidy(m))
}
