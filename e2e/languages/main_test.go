package languages

import (
	"testing"

	"mobula/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
