//go:build !invariants

package worker

const lendsCopies = false
