// Package testkit is what tests of all packages share: seeds that are the same in every run, and the one bound of a wait.
//
//	seeds.go      a seed for each test, made of its name; rapid's checks, which take theirs from there
//	tidy.go       a temporary directory for a package's tests, in which they must leave nothing
//	patience.go   how long a test waits for what has to come: a bound against hangs, never an assertion on speed
//
// Two variables of the environment change them: MOBULA_TEST_SEED gives all tests other seeds, as the deep run does, and
// MOBULA_TEST_PATIENCE multiplies the bound. Only tests import this package.
package testkit
