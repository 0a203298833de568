// Package e2e has no code of its own: its sub-packages hold the parts together to what the whole promises. Nodes, drivers and workers are real
// processes where that is what a test is about: the package's test binary, started again as what its environment says. A test owns the processes it
// starts, by their ids, and ends them when it ends. Every wait has a deadline, and says what it waited for.
//
//   - e2e/api: the Go API;
//   - e2e/languages: Go with Python, both ways;
//   - e2e/faults: crashes, bad input, strangers, nodes that are lost;
//   - e2e/restarts: nodes that are started again, drivers that go;
//   - e2e/disk: disk and memory that are short;
//   - e2e/cluster: nodes in network namespaces, which are killed and cut off.
//
// They are packages of about the same time each, so that a run that is stopped, or tried again, loses a part. What they share is e2e/harness.
package e2e
