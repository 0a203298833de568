package main

import "testing"

const benchRecords = 335_544 // a chunk of 32 MiB

func BenchmarkGenerate(b *testing.B) {
	data := make([]byte, benchRecords*recordSize)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		generate(data, 7)
	}
}

func BenchmarkChecksum(b *testing.B) {
	data := make([]byte, benchRecords*recordSize)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		checksum(data)
	}
}

func BenchmarkIndexAndGather(b *testing.B) {
	data, out := make([]byte, benchRecords*recordSize), make([]byte, benchRecords*recordSize)
	generate(data, 7)
	var s scratch
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for i, e := range s.index(data) {
			copy(out[i*recordSize:][:recordSize], data[int(e.at)*recordSize:][:recordSize])
		}
	}
}

func BenchmarkMerge64(b *testing.B) {
	runs := make([][]byte, 64)
	for i := range runs {
		data := make([]byte, benchRecords/64*recordSize)
		generate(data, i*1000)
		var s scratch
		for _, e := range s.index(data) {
			runs[i] = append(runs[i], data[int(e.at)*recordSize:][:recordSize]...)
		}
	}
	out := make([]byte, len(runs)*len(runs[0]))
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		mergeInto(out, runs)
	}
}

func BenchmarkVerify(b *testing.B) {
	data := make([]byte, benchRecords*recordSize)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := verify(data); err != nil {
			b.Fatal(err)
		}
	}
}
