// Package dealing is what a node must not forget of jobs of other homes: with which of them each of its own jobs has to do, by what their owners have said to each
// other since the node has started. They are told when the job ends, and it is told when they are gone.
//
// Who says something notes the pair before it looks whether the other side is there, and whoever ends a side looks here after that: so no pair is left of
// which one is gone. A Table may be used by several goroutines; nothing blocks, and nothing fails.
package dealing
