// Arity writes the typed handles of package mobula: Go has no variadic type parameters,
// so there is one type for each number of arguments. Run by go generate at the module's root.
//
// It owns the files zz_*.go; a test compares them with what it would write. It exits with 1 if it
// cannot write one.
package main
