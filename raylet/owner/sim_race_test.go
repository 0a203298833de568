//go:build race

package owner

// Under the race detector, which takes ten times as long and has nothing to find in a core without goroutines, fewer seeds are run.
func init() { simSeeds /= 4 }
