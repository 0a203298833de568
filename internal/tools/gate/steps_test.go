package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each package with tests runs in one step: none twice, none left out.
func TestEachPackageRunsOnce(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	e := env{root: root, out: os.Stderr}
	quiet, err := packagesOf(e, loud, true)
	if err != nil {
		t.Fatal(err)
	}
	busy, err := packagesOf(e, loud, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loud {
		dir, _ := strings.CutSuffix(p, "/...")
		if !slices.ContainsFunc(busy, func(b string) bool { return strings.HasPrefix(b+"/", "mobula/"+dir+"/") }) {
			t.Errorf("loud names %s, where no package with tests is", p)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(quiet, busy)))
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) || n < 100 {
		t.Errorf("%d packages, %d of them different", len(all), n)
	}
	for _, want := range []string{"mobula", "mobula/wire", "mobula/internal/node/route"} {
		if !slices.Contains(quiet, want) {
			t.Errorf("%s is not among those that start no process", want)
		}
	}
	if slices.Contains(all, "mobula/internal/lint") {
		t.Error("internal/lint is run by the step lint")
	}
}
