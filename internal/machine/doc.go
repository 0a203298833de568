// Package machine gives the machine's boot id, so that a program can tell whether a file was written before a reboot.
//
// It owns no state. It blocks only to read /proc; if that fails the id is empty, without an error.
package machine
