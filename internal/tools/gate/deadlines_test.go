package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"mobula/internal/testkit"
)

// Each bound leaves the one inside it the room to tell what it waited for: a wait, a Python test of several, a Go package, a step.
func TestDeadlinesNest(t *testing.T) {
	t.Setenv("MOBULA_TEST_PATIENCE", "")
	config, err := os.ReadFile("../../../python/pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^timeout = (\d+)`).FindSubmatch(config)
	if m == nil {
		t.Fatal("python/pyproject.toml has no timeout of pytest")
	}
	seconds, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	wait, pytest := testkit.Patience(), time.Duration(seconds)*time.Second
	if pytest < 5*wait {
		t.Errorf("pytest's limit of a test, %v, is below five waits of %v", pytest, wait)
	}
	if packageLimit < pytest || packageLimit < 5*wait {
		t.Errorf("a Go package's limit, %v, is below that of a Python test, %v, or of five waits of %v", packageLimit, pytest, wait)
	}
	for _, s := range steps {
		if s.suites != nil && s.limit <= packageLimit {
			t.Errorf("the limit of step %s, %v, is not above a package's, %v", s.name, s.limit, packageLimit)
		}
	}
}
