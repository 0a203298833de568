package main

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// records makes n records with keys from a small alphabet, so that many are equal.
func records(t *rapid.T, n int, name string) []byte {
	data := make([]byte, n*recordSize)
	generate(data, rapid.IntRange(0, 1<<40).Draw(t, name+" first"))
	if rapid.Bool().Draw(t, name+" equal keys") {
		for i := range n {
			copy(data[i*recordSize:], rapid.SampledFrom([]string{"aaaaaaaaaa", "aaaaaaaaab", "aaaabaaaaa", "zzzzzzzzzz"}).Draw(t, "key"))
		}
	}
	return data
}

// reference sorts the plain way.
func reference(chunks ...[]byte) []byte {
	rows := slices.Collect(slices.Chunk(slices.Concat(chunks...), recordSize))
	slices.SortStableFunc(rows, func(a, b []byte) int { return bytes.Compare(a[:keySize], b[:keySize]) })
	return slices.Concat(rows...)
}

func keysOf(data []byte) (out []Key) {
	for r := range slices.Chunk(data, recordSize) {
		out = append(out, keyOf(r))
	}
	return out
}

func TestIndexSorts(t *testing.T) {
	var s scratch
	testkit.Check(t, func(t *rapid.T) {
		data := records(t, rapid.IntRange(0, 300).Draw(t, "n"), "data")
		var got []byte
		for _, e := range s.index(data) {
			got = append(got, data[int(e.at)*recordSize:][:recordSize]...)
		}
		if !slices.Equal(keysOf(got), keysOf(reference(data))) || checksum(got) != checksum(data) {
			t.Fatal("the index is not in order")
		}
	})
}

func TestMergeMerges(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 9).Draw(t, "runs")
		runs := make([][]byte, n)
		for i := range runs {
			runs[i] = reference(records(t, rapid.IntRange(0, 40).Draw(t, "n"), "run"))
		}
		want := reference(runs...)
		got := make([]byte, len(want))
		mergeInto(got, slices.Clone(runs))
		if !slices.Equal(keysOf(got), keysOf(want)) || checksum(got) != checksum(want) {
			t.Fatalf("%d runs are not merged", n)
		}
	})
}

func TestCutIsWhereTheSplittersGo(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		data := reference(records(t, rapid.IntRange(0, 100).Draw(t, "n"), "data"))
		keys := keysOf(records(t, 5, "splitters"))
		sortKeys(keys)
		n := len(data) / recordSize
		cuts := cut(n, func(i int) []byte { return data[i*recordSize:] }, keys)
		for i, at := range cuts {
			if at > 0 && bytes.Compare(data[(at-1)*recordSize:][:keySize], keys[i][:]) >= 0 || at < n && bytes.Compare(data[at*recordSize:][:keySize], keys[i][:]) < 0 {
				t.Fatalf("splitter %d is cut at %d of %d", i, at, n)
			}
		}
	})
}

func TestVerifyFindsDisorder(t *testing.T) {
	data := make([]byte, 50*recordSize)
	generate(data, 0)
	sorted := reference(data)
	s, err := verify(sorted)
	if err != nil || s.Records != 50 || s.Sum != checksum(data) || s.First != keyOf(sorted) || s.Last != keyOf(sorted[49*recordSize:]) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := verify(data); err == nil {
		t.Error("unsorted data is accepted")
	}
	if _, err := verify(sorted[:120]); err == nil {
		t.Error("a torn record is accepted")
	}
	if _, err := verifyTask(t.Context(), [][]byte{sorted[2500:], sorted[:2500]}); err == nil {
		t.Error("partitions in the wrong order are accepted")
	}
	if all, err := verifyTask(t.Context(), [][]byte{nil, sorted[:2500], nil, sorted[2500:]}); err != nil || all != s {
		t.Errorf("in parts: %+v, %v, want %+v", all, err, s)
	}
	sorted[150]++
	if s, err := verify(sorted); err != nil || s.Sum == checksum(data) {
		t.Errorf("a changed byte keeps the checksum: %v", err)
	}
}

func TestPlanFitsTheStore(t *testing.T) {
	const mib = 1 << 20
	for _, store := range []int64{128 * mib, 512 * mib, 8 << 30} {
		for _, partitions := range []int{1, 10, 100, 1000, 5000} {
			for _, workers := range []int{1, 2, 8, 64} {
				cfg := config{data: 2 << 30, store: store, partitions: partitions, workers: workers}
				p := newPlan(cfg)
				if n := p.chunks * p.ranges; n > 40_000 {
					t.Errorf("%+v: %d pieces", cfg, n)
				}
				if (p.chunks-1)*p.chunk >= p.records || p.chunks*p.chunk < p.records {
					t.Errorf("%+v: %d chunks of %d for %d records", cfg, p.chunks, p.chunk, p.records)
				}
				if p.splitting < 1 || p.merging < 1 || p.threads < 1 {
					t.Errorf("%+v: %+v", cfg, p)
				}
				if held := int64(p.splitting*2*p.chunk) * recordSize; held > store/2 {
					t.Errorf("%+v: splits hold %d bytes", cfg, held)
				}
				last := 0
				for u := range p.units() {
					from, to := p.unit(u)
					if from != last || to <= from {
						t.Errorf("%+v: unit %d is [%d, %d), after %d", cfg, u, from, to, last)
					}
					last = to
				}
				if last != partitions {
					t.Errorf("%+v: units end at partition %d", cfg, last)
				}
			}
		}
	}
}

func TestQuantiles(t *testing.T) {
	keys := make([]Key, 100)
	for i := range keys {
		keys[i][0] = byte(i)
	}
	q := quantiles(keys, 4)
	if len(q) != 3 || q[0][0] != 25 || q[2][0] != 75 {
		t.Errorf("got %v", q)
	}
	if len(quantiles(keys, 1)) != 0 {
		t.Error("one part has a cut")
	}
}

func TestFlags(t *testing.T) {
	cfg, err := parse([]string{"-size", "1MiB", "-store", "64MiB", "-partitions", "7", "-workers", "3"}, &bytes.Buffer{})
	if err != nil || cfg.data != 1<<20 || cfg.store != 64<<20 || cfg.partitions != 7 || cfg.workers != 3 {
		t.Errorf("%+v, %v", cfg, err)
	}
	t.Setenv("PARTITIONS", "11")
	t.Setenv("SIZE", "3MiB")
	if cfg, err := parse(nil, &bytes.Buffer{}); err != nil || cfg.partitions != 11 || cfg.data != 3<<20 {
		t.Errorf("from the environment: %+v, %v", cfg, err)
	}
	for _, bad := range [][]string{{"-size", "x"}, {"-size", "1B"}, {"-partitions", "0"}, {"-workers", "-1"}, {"-nonsense"}} {
		if _, err := parse(bad, &bytes.Buffer{}); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestTrailerRoundTrip(t *testing.T) {
	want := trailer{Sum: 1 << 63, Counts: []uint32{0, 7, 1 << 31}}
	got, err := decodeTrailer(want.encode(), 3)
	if err != nil || got.Sum != want.Sum || !slices.Equal(got.Counts, want.Counts) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, b := range [][]byte{nil, want.encode()[:9], want.encode()} {
		if _, err := decodeTrailer(b, 2); err == nil {
			t.Errorf("%d bytes are accepted for 2 pieces", len(b))
		}
	}
}
