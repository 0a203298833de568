// Package cluster has no code of its own: its tests hold a cluster of mobula nodes to what it promises when nodes are killed, cut off and probed by
// strangers. Each node is the built executable, started as a user would, in a network namespace with an address of its own (package netns); the test is
// a driver beside the first node. The tests need root and ip, and are skipped without.
//
// MOBULA_BINARY names the executable; without it the tests build one. MOBULA_STRESS runs them at full size.
package cluster
