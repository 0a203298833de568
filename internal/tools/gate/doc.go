// Command gate runs what decides whether a change lands, step by step, the cheapest first, and prints how long each took. `.ci/run` calls it
// with every step, `make test`, `make gotest` and `make pytest` with some of them; `gate -h` lists them.
//
// It looks for no new faults: the deep run does. So a test that fails is run again by itself, in a new process, and a package that panicked or
// reached its time limit is run again whole. What then passes is a line FLAKY at the end, with the log of its failure, and does not stop
// the change; what fails three times does, and so do more than ten packages with a failure, or reruns of more than ten minutes in all.
// A test that .ci/quarantine.yaml lists runs with the others, and does not stop the change either way.
//
//	steps.go       the table of steps
//	judge.go       what a first run means: what is run again, and what that decides
//	gotest.go      a suite: the tests of Go packages
//	pytest.go      a suite: the tests of a Python folder
//	quarantine.go  the tests that are known to fail by chance
//	report.go      the table and the lines at the end
package main
