// Package mobulatest gives a test a runtime in one line:
//
//	func TestSum(t *testing.T) {
//		ctx := mobulatest.Context(t)
//		got, err := Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx)
//		...
//	}
//
// The runtime is embedded, has a small store (64 MiB) and its files in the test's temporary directory, and
// is closed when the test ends. The test fails if it cannot be closed within 30 s or if it leaves a goroutine behind.
//
// Cluster runs several nodes in the process of the test. They can be killed, stopped, started again, cut off from one another and joined by others; Settle waits
// until they agree on what has become of them.
//
// Start takes a plan of faults (package chaos): WithFaults. StartNode runs a node in a process of its own, which can be killed and
// started again. Invariant checks a condition while a test runs. docs/guide/testing-faults.md shows all three, which are experimental:
// they may change in any release.
//
// Tests whose tasks run in worker processes (mobula.WithProcesses, Cluster) need Main in TestMain, because the
// workers are the test binary started again.
package mobulatest
