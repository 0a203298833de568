// Package steady has a clock that cannot be set.
//
// A node has one Clock. Its times look like Unix nanoseconds, since it begins with the wall clock's time, but it advances
// with CLOCK_MONOTONIC: when somebody sets the wall clock back by an hour, timers, retries and spilling go on, and a deadline
// stays as far away as it was. Cores, deadlines and the times of attempts all use the node's clock. A client makes a copy of
// it from the offset in its Welcome, so that times in messages mean the same on both sides.
//
// A Clock has no state and nothing in it blocks.
package steady
