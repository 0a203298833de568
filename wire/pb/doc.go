// Package pb is generated from wire/mobula.proto. The runtime itself encodes with
// package wire; pb is the reference that its tests compare with, and what a tool
// that is not on a task's path may use. It holds no state and never blocks.
package pb
