package codec

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"
)

// The scalars by hand, as the CBOR library would write them: the shortest form.

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return append(b, major|25, byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func appendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, 0x20, uint64(^n))
	}
	return appendHead(b, 0, uint64(n))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xf5)
	}
	return append(b, 0xf4)
}

func appendFloat64(b []byte, f float64) []byte {
	if g := float32(f); float64(g) == f || f != f {
		return appendFloat32(b, g)
	}
	return binary.BigEndian.AppendUint64(append(b, 0xfb), math.Float64bits(f))
}

func appendFloat32(b []byte, f float32) []byte {
	if f != f {
		return append(b, 0xf9, 0x7e, 0x00)
	}
	if h, ok := toFloat16(f); ok {
		return append(b, 0xf9, byte(h>>8), byte(h))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xfa), math.Float32bits(f))
}

// toFloat16 gives the exact half-precision form, if there is one.
func toFloat16(f float32) (uint16, bool) {
	switch float16.PrecisionFromfloat32(f) {
	case float16.PrecisionExact:
		return float16.Fromfloat32(f).Bits(), true
	case float16.PrecisionUnknown: // subnormal: only a conversion and back tells
		if h := float16.Fromfloat32(f); h.Float32() == f {
			return h.Bits(), true
		}
	}
	return 0, false
}

// readHead reads a whole item of one major type; ok only if b holds just that.
func readHead(b []byte) (major byte, n uint64, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	major = b[0] & 0xe0
	switch low := b[0] & 0x1f; {
	case low < 24 && len(b) == 1:
		return major, uint64(low), true
	case low == 24 && len(b) == 2:
		return major, uint64(b[1]), true
	case low == 25 && len(b) == 3:
		return major, uint64(binary.BigEndian.Uint16(b[1:])), true
	case low == 26 && len(b) == 5:
		return major, uint64(binary.BigEndian.Uint32(b[1:])), true
	case low == 27 && len(b) == 9:
		return major, binary.BigEndian.Uint64(b[1:]), true
	}
	return 0, 0, false
}

// readInt reads an integer that fits size bytes.
func readInt(b []byte, size uintptr) (int64, bool) {
	major, n, ok := readHead(b)
	if !ok || n > math.MaxInt64 {
		return 0, false
	}
	v := int64(n)
	switch major {
	case 0:
	case 0x20:
		v = ^v
	default:
		return 0, false
	}
	shift := 64 - 8*size
	return v, v<<shift>>shift == v
}

func readUint(b []byte, size uintptr) (uint64, bool) {
	major, n, ok := readHead(b)
	shift := 64 - 8*size
	return n, ok && major == 0 && n<<shift>>shift == n
}

func readFloat(b []byte) (float64, bool) {
	switch {
	case len(b) == 3 && b[0] == 0xf9:
		return float64(float16.Frombits(binary.BigEndian.Uint16(b[1:])).Float32()), true
	case len(b) == 5 && b[0] == 0xfa:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b[1:]))), true
	case len(b) == 9 && b[0] == 0xfb:
		return math.Float64frombits(binary.BigEndian.Uint64(b[1:])), true
	}
	return 0, false
}
