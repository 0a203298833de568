// Command pyversion writes the version of the Python package: the release under development
// (package release). Run by go generate.
//
// It owns python/mobula/_version.py, which a test compares with what it would write, and
// exits with 1 if that cannot be written.
package main
