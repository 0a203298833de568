// Package restarts has no code of its own: its tests hold nodes to what outlives them. A node is killed or stopped and started again in its directory;
// its objects, jobs, actors and their names are there, and a driver notices nothing but the time it takes. Drivers go, and what is detached stays.
//
//   - restart_test.go, replay_test.go, bank_test.go, graph*_test.go: what ran goes on, and what had ended does not run again;
//   - detached_test.go, lifecycle_test.go, supervise_test.go: actors whose driver or node goes;
//   - crossing_test.go, error_refs_test.go: references that cross jobs, and those in errors;
//   - lost_job_test.go, power_loss_test.go, orphans_test.go, log_size_test.go: what a life leaves in the node's directory;
//   - upgrade_test.go: a directory of the release before, in testdata;
//   - wired_trust_test.go: nodes of a cluster that come back after weeks;
//   - soak_test.go: short jobs under kills, after which the node holds what it held before (`make soak`).
package restarts
