// Package api has no code of its own: its tests hold the Go API to what it promises, through the API, on real nodes. Most run twice:
// with tasks in goroutines of the driver and in worker processes, which are this test binary started again. Tasks tell their state
// through files, because they may be anywhere.
package api
