// Package registertest holds a register to the rules of package register.
//
// It owns nothing, blocks as the register does for a minute at most, and gives no errors of its own: what
// does not hold fails the test.
package registertest
