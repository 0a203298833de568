// Package object is the state machine of one object as its owner sees it: whether it has a
// value, and where. Bytes, pins and residency are the store's; counts are package owner's.
package object
