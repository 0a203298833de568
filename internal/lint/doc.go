// Package lint holds the module to its own rules, by tests: a rule that nobody checks is a wish.
//
//	purity_test.go    cores decide, and import nothing that acts: no goroutine, clock, I/O or actor, transitively
//	layers_test.go    which package may import which layer, and which one may import a module of others
//	seeds_test.go     tests draw from a seed that is the same in every run: none of the clock, none of the global source
//	size_test.go      what a hello-world program links, and how large it is
//	api_test.go       the exported API of the release before, of which nothing goes without a word in CHANGELOG.md
//	deadcode_test.go  what no program reaches and tests alone call, of which each has its reason
//	cleanups_test.go  what the Go runtime runs for garbage, of which nothing waits for the node
//	waits_test.go     tests bound their waits by internal/testkit, not by constants of real time
//
// The tables are in the tests. Each fails for what breaks its rule, and also for an exception that is no longer needed.
// `make lint` runs them; so does every `go test ./...`.
package lint
