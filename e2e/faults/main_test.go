package faults

import (
	"testing"

	"mobula/e2e/harness"
	"mobula/gcs/gcstest"
)

func TestMain(m *testing.M) { harness.Main(m, strangerMain, gcstest.Main) }
