package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// pySnippet is one block.
type pySnippet struct {
	Page string `json:"page"`
	Line int    `json:"line"`
	Code string `json:"code"`
}

//go:embed snippets.py
var checker string

func pythonOf(p *page) (out []pySnippet) {
	for _, b := range p.blocks {
		if b.language == "python" {
			out = append(out, pySnippet{p.path, b.line, b.text})
		}
	}
	return out
}

// compilePython has a Python look at the blocks, where there is one.
func (t *tree) compilePython(all []pySnippet, notes io.Writer) ([]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Fprintln(notes, "docs: there is no python3: the Python snippets were not checked")
		return nil, nil
	}
	in, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(python, "-c", checker, filepath.Join(t.root, "python", "mobula"))
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the check of Python snippets: %w\n%s", err, stderr.Bytes())
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	return out, nil
}
