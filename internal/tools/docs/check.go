package main

import "io"

// check gives every finding; notes says what could not be checked.
func check(root string, notes io.Writer) ([]string, error) {
	all, err := pages(root)
	if err != nil {
		return nil, err
	}
	t, err := newTree(root, all)
	if err != nil {
		return nil, err
	}
	var out []string
	var units []*unit
	var python []pySnippet
	for _, p := range all {
		out = append(out, t.checkLinks(p)...)
		out = append(out, t.checkNames(p)...)
		us, wrong := t.goOf(p)
		units = append(units, us...)
		out = append(out, wrong...)
		python = append(python, pythonOf(p)...)
	}
	wrong, err := compile(root, units)
	if err != nil {
		return nil, err
	}
	out = append(out, wrong...)
	wrong, err = t.compilePython(python, notes)
	return append(out, wrong...), err
}
