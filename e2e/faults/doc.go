// Package faults has no code of its own: its tests hold nodes to what they promise when something is wrong. Each fault gives a typed error that says
// what it is, or is survived; nothing is lost and nothing hangs.
//
//   - crash_*_test.go: components panic, processes are killed, under load that checks every result;
//   - fault_*_test.go: functions that end their process, leak or never return, bad frames, another user, another build;
//   - border_test.go, keys_test.go, strangers_test.go: what other jobs, and other users of the machine, can reach;
//   - several_nodes_test.go, nodes_placing_test.go, seen*_test.go: nodes in one process that talk over a network in memory: where work runs, and what
//     each of them tells of all, with nodes that do not answer and clocks that are apart;
//   - wired*_test.go: a cluster on the loopback: who joins it, who does not, and what a node's loss does.
//
// MOBULA_STRESS runs the crash tests at full size (`make stress`); MOBULA_TEST_LOG shows the nodes' logs.
package faults
