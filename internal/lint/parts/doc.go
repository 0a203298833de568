// Package parts checks how a type is composed, for the tests of types that are too large to be one.
package parts
