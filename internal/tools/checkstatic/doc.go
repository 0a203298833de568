// Command checkstatic fails unless each executable named on its command line is
// statically linked: no interpreter, no shared library.
//
// It only reads them, and exits with 1 and the name of what is not.
package main
