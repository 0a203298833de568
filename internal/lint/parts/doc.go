// Package parts checks how a type is composed, for the tests of types that are too large to be one: the owner's and the store's cores.
//
// It owns no state and does not block. A composition that is not in order fails the test that asks.
package parts
