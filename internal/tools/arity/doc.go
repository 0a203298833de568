// Arity writes the typed handles of package mobula: Go has no variadic type parameters,
// so there is one type a number of arguments. Run by go generate at the module's root.
package main
