// Package languages has no code of its own: its tests hold programs in Go and Python to meaning the same on any node. Go calls Python, Python calls Go,
// a trace goes through both, and each of them runs with its driver's environment, and on nodes that do not have its files.
//
//   - modes_test.go, nested_test.go: what a program does, with tasks in goroutines and in processes;
//   - python_*_test.go: Go programs that call Python, and Python that calls them back;
//   - *_trace_test.go: the spans of both are one tree;
//   - blobs*_test.go, no_shared_files_test.go: executables and modules that reach other nodes;
//   - outside_test.go: the README's first program, built elsewhere.
//
// What needs Python is skipped where there is none.
package languages
