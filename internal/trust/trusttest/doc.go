// Package trusttest has what tests of the packages of trust share: tables in memory that can fail, clocks that can be set, and a cluster's authority
// on them.
//
// Tables own their rows, and a Clock its time; both are safe for concurrent use. Nothing blocks. Errors: those that a test asked for.
package trusttest
