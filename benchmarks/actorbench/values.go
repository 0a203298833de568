package main

// parcel has 100 bytes.
type parcel struct {
	A, B, C, D, E, F, G, H, I, J, K, L int64
	M                                  int32
}

// kind is a type of values, each of which has a number.
type kind[T any] struct {
	name  string // of its figures
	bytes int
	of    func(n int) T
	num   func(v T) int
}

var (
	ints    = &kind[int]{"int", 8, func(n int) int { return n }, func(v int) int { return v }}
	parcels = &kind[parcel]{"100 B", 100, func(n int) parcel { return parcel{A: int64(n)} }, func(v parcel) int { return int(v.A) }}
)

// after is what an actor answers: the next value.
func (k *kind[T]) after(v T) T { return k.of(k.num(v) + 1) }
