package oplog

import (
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or the child that TestKilled kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("OPLOG_TEST_CHILD"); dir != "" {
		appendForEver(dir)
	}
	goleak.VerifyTestMain(m)
}

// appendForEver appends numbered records and acknowledges each on stdout.
func appendForEver(dir string) {
	first, _ := strconv.Atoi(os.Getenv("OPLOG_TEST_FIRST"))
	l, err := Open(dir, Options{MinSegment: 64 << 10, MaxSegment: 64 << 10})
	if err != nil {
		panic(err)
	}
	var ack [8]byte
	for i := uint64(first); ; i++ {
		if _, err := l.Append(numbered(i)); err != nil {
			panic(err)
		}
		binary.LittleEndian.PutUint64(ack[:], i)
		if _, err := os.Stdout.Write(ack[:]); err != nil {
			os.Exit(0)
		}
	}
}

// numbered is the i-th record of the child: its number, and bytes that follow from it.
func numbered(i uint64) []byte {
	b := make([]byte, 8+i*37%700)
	binary.LittleEndian.PutUint64(b, i)
	for j := 8; j < len(b); j++ {
		b[j] = byte(i) + byte(j)
	}
	return b
}

// acks reads acknowledgements to the end and gives the last.
func acks(r io.Reader) (last uint64, n int) {
	var b [8]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return last, n
		}
		last = binary.LittleEndian.Uint64(b[:])
		n++
	}
}
