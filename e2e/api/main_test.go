package api

import (
	"testing"

	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }
