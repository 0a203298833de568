// Package e2e has no code of its own: its tests hold the parts together to what the whole promises. Nodes,
// drivers and workers are real processes where that is what a test is about: this test binary, started again
// as what its environment says. A test owns the processes it starts, by their ids, and ends them when it ends.
// Every wait has the deadline of its test (harness.Limit), and says what it waited for.
//
// Package e2e/api holds the Go API to what it promises, e2e/harness is what both share.
//
//   - modes_test.go: what a program does, with tasks in goroutines and in processes;
//   - python_*_test.go: Go programs that call Python, and Python that calls them back;
//   - crash_*_test.go: components panic, processes are killed, under load that checks every result;
//   - fault_*_test.go: bad input and faults of functions, store, spill storage, connections and builds. Each gives
//     a typed error that says what is wrong, or is survived; nothing is lost and nothing hangs.
//
// MOBULA_STRESS runs the crash tests at full size (`make stress`); MOBULA_TEST_LOG shows the nodes' logs. Tests that
// need a full or a read-only disk mount one, in a process with mounts of its own.
package e2e
