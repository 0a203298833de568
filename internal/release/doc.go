// Package release says which release this is. Its Version is the one place where that is
// written: make generate writes it into the Python package, and a node tells it to whoever
// connects (wire.Welcome). Nothing here blocks or fails.
package release

//go:generate go run mobula/internal/tools/pyversion -root ../..
