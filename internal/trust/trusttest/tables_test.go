package trusttest_test

import (
	"testing"

	"mobula/internal/trust/trusttest"
)

func TestTables(t *testing.T) { trusttest.Conform(t, trusttest.NewTables()) }
