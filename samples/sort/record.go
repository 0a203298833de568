package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A record is 100 bytes, of which the first ten are its key.
const (
	recordSize = 100
	keySize    = 10
)

// Key orders records.
type Key = [keySize]byte

func keyOf(record []byte) Key { return Key(record[:keySize]) }

// prefix is the start of the key, in its order.
func prefix(record []byte) uint64 { return binary.BigEndian.Uint64(record) }

func less(a, b []byte) bool {
	if x, y := prefix(a), prefix(b); x != y {
		return x < y
	}
	return bytes.Compare(a[8:keySize], b[8:keySize]) < 0
}

// mix is the finaliser of SplitMix64: record i always has the same key.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// generate writes the records from first on into dst.
func generate(dst []byte, first int) {
	for i := first; len(dst) >= recordSize; i++ {
		r := dst[:recordSize]
		state := mix(uint64(i))
		binary.BigEndian.PutUint64(r, state)
		binary.LittleEndian.PutUint64(r[8:], uint64(i)) // the last two bytes of the key, and the record's number
		for at := 16; at+8 <= recordSize; at += 8 {
			state = state*6364136223846793005 + 1442695040888963407
			binary.LittleEndian.PutUint64(r[at:], state)
		}
		binary.LittleEndian.PutUint32(r[recordSize-4:], uint32(state>>32))
		dst = dst[recordSize:]
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum does not depend on the records' order.
func checksum(data []byte) (sum uint64) {
	for ; len(data) >= recordSize; data = data[recordSize:] {
		sum += uint64(crc32.Checksum(data[:recordSize], castagnoli))
	}
	return sum
}
