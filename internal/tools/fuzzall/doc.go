// Command fuzzall runs every fuzz target of the module in turn, each for the same
// time, and stops at the first failure.
//
// It owns nothing but the go test that runs at the moment, and exits with 1 and the target's name if that fails.
package main
