package amount

import "fmt"

const tooMuch = float64(1 << 50) // thousandths of it may not fit into 64 bits

// Wrong says what is wrong with an amount of a resource, or "".
func Wrong(n float64, resource string) string {
	if n >= 0 && n < tooMuch {
		return ""
	}
	return fmt.Sprintf("%g of resource %q: give 0 or more, and less than %g", n, resource, tooMuch)
}
