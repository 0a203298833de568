// Package lease is the state machine of one lease as the owner that uses it sees it. What a
// lease costs and who may have it is the scheduler's; the tasks on it are package owner's.
package lease
