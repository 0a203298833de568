// Command fuzzall runs every fuzz target of the module, or of the packages that are named, for the same time each or within a time for all, one a processor at once, and begins no more
// after the first failure.
//
// It owns nothing but the go tests that run at the moment, and exits with 1 and the target's name if one fails.
package main
