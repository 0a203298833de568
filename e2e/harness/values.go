package harness

// MiB is so many bytes.
const MiB = 1 << 20

// Array is so many bytes of v.
func Array(bytes int, v float64) []float64 {
	xs := make([]float64, bytes/8)
	for i := range xs {
		xs[i] = v
	}
	return xs
}

// Holds tells whether xs is Array(bytes, v).
func Holds(xs []float64, bytes int, v float64) bool {
	for _, x := range xs {
		if x != v {
			return false
		}
	}
	return len(xs) == bytes/8
}
