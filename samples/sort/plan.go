package main

// plan says in which pieces the data is sorted. Everything follows from the sizes; nothing needs tuning.
//
// The data is made and split chunk by chunk: each chunk is sorted and cut at the same keys, into one piece for
// each range. Then each range is merged from its pieces, one of every chunk. So there are chunks x ranges pieces:
// not so many that each is tiny, and not so large that the work on a few of them does not fit the store.
//
// If partitions are small, a range is several partitions, and its merge has as many results. If they are large, a
// partition is several ranges, merged one after another into one result.
type plan struct {
	records    int
	chunk      int // records of a chunk; the last one has the rest
	chunks     int
	partitions int

	perRange     int // partitions of a range; 1 or more if perPartition is 1
	perPartition int // ranges of a partition
	ranges       int

	splitting int // chunks under way at once
	merging   int // merges under way at once
	verifying int // checks of what a merge made
	threads   int // of a merge
}

const (
	unitMax = 32 << 20 // bytes of a chunk or range: more gains nothing
	unitMin = 1 << 20
)

func newPlan(cfg config) plan {
	p := plan{records: int(cfg.data / recordSize), partitions: cfg.partitions, perRange: 1, perPartition: 1, threads: 1}
	unit := max(min(cfg.store/8, unitMax), unitMin) // bytes
	p.chunk = max(int(unit/recordSize), 1)
	p.chunks = (p.records + p.chunk - 1) / p.chunk
	partition := max(cfg.data/int64(cfg.partitions), 1)
	var merge int64 // bytes that a merge has in memory at once
	room := cfg.store * 7 / 10
	if partition > 2*unit {
		if partition+3*unit > room { // the next range is fetched while one is merged
			unit /= 2
		}
		p.perPartition = int((partition + unit - 1) / unit)
		p.ranges = p.partitions * p.perPartition
		merge = partition + 3*unit
	} else {
		p.perRange = int(max(unit*4/3/partition, 1))
		p.ranges = (p.partitions + p.perRange - 1) / p.perRange
		merge = 2 * partition * int64(p.perRange)
	}
	// A chunk is in memory twice while it is split. Half of the store is left to earlier results, so that they
	// need not be spilled at once.
	p.splitting = bound(cfg.store/2/(2*int64(p.chunk)*recordSize), 2*cfg.workers)
	p.merging = bound(room/merge, 2*cfg.workers)
	p.verifying = bound(room/(partition*int64(p.perRange)), 4*cfg.workers)
	if p.perPartition > 1 && p.merging < cfg.workers {
		p.threads = min(cfg.workers/p.merging, 4)
	}
	return p
}

func bound(n int64, most int) int { return int(max(1, min(n, int64(most)))) }

// units is how many merge tasks there are.
func (p plan) units() int {
	if p.perPartition > 1 {
		return p.partitions
	}
	return p.ranges
}

// unit gives the partitions [from, to) that the u-th merge makes.
func (p plan) unit(u int) (from, to int) {
	return u * p.perRange, min((u+1)*p.perRange, p.partitions)
}

// chunkAt gives the first record of a chunk and how many it has.
func (p plan) chunkAt(c int) (first, n int) {
	first = c * p.chunk
	return first, min(p.chunk, p.records-first)
}

// steps counts what the progress bar counts: bytes made, merged and verified.
func (p plan) steps() int64 { return 3 * int64(p.records) * recordSize }
