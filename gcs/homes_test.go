package gcs

import (
	"testing"

	"mobula/internal/home/register/registertest"
)

func TestTheControlPlaneIsARegisterOfHomes(t *testing.T) {
	sys, g := startTest(t, t.TempDir())
	defer stopTest(t, sys)
	registertest.Conform(t, Register{g})
}
