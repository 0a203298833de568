// Arity writes the typed handles of package mobula: Go has no variadic type parameters,
// so there is one type a number of arguments. Run by go generate at the module's root.
//
// It owns the files zz_*.go, which a test compares with what it would write, and exits
// with 1 if one cannot be written.
package main
