package mobula

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if WorkerMain() {
		return
	}
	goleak.VerifyTestMain(m)
}
