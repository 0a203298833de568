package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestThePackageIsOfThisRelease(t *testing.T) {
	have, err := os.ReadFile(filepath.Join("../../..", file))
	if err != nil || string(have) != text {
		t.Errorf("%s says\n%s, %v\nand not\n%s: run make generate", file, have, err, text)
	}
}
