//go:build invariants

package worker

const lendsCopies = true
