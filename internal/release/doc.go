// Package release has the number of this release. Version is the only place where it is written: make generate
// copies it into the Python package, and a node sends it to everyone that connects (wire.Welcome). Nothing here
// blocks or fails.
package release

//go:generate go run mobula/internal/tools/pyversion -root ../..
