// Package registertest holds a register of homes to the rules of package register, and has one in memory for tests.
//
// Conform owns nothing, blocks as the register does for a minute at most, and gives no errors of its own: what
// does not hold fails the test.
package registertest
