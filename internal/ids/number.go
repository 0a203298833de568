package ids

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Home is the number of a place where ids are given out. The control plane gives one to a node's directory alone, when it
// first joins the cluster. Ids that a home gives out begin with its number for ever; which node answers for it now is in
// the control plane's table, and may change. The first home of a cluster is 0.
type Home uint32

// A job's, client's, lease's or worker's id is its home and a number that the home gave out once: HomeBits and
// NumberBits below a zero bit. docs/decisions/0017 explains the sizes.
const (
	HomeBits   = 27
	NumberBits = 36

	MaxHome   Home   = 1<<HomeBits - 1
	MaxNumber uint64 = 1<<NumberBits - 1
)

// ID is the n-th id that a home gives out.
func (h Home) ID(n uint64) uint64 { return uint64(h)<<NumberBits | n&MaxNumber }

// Next is the id behind one that was given out, of the same home; false: that was the home's last.
func Next[T JobID | ClientID | LeaseID | WorkerID](id T) (next T, ok bool) {
	if uint64(id)&MaxNumber == MaxNumber {
		return 0, false
	}
	return id + 1, true
}

// String prints the home as decimal.
func (h Home) String() string { return strconv.FormatUint(uint64(h), 10) }

// ParseHome reads the output of String.
func ParseHome(s string) (Home, error) {
	h, err := strconv.ParseUint(s, 10, HomeBits)
	if err != nil {
		return 0, fmt.Errorf("%q is no node's id: want a number: %w", s, ErrBadID)
	}
	return Home(h), nil
}

// JobID names a driver's job, in the whole cluster and for ever; 0 is no job.
type JobID uint64

// ClientID names one connection of a driver or worker process to a node. It is never reused; 0 is no client.
type ClientID uint64

// LeaseID names one lease of a worker slot; never reused. 0 is no lease.
type LeaseID uint64

// WorkerID names a worker process; never reused. 0 is no worker.
type WorkerID uint64

// Home is where the job's owner is.
func (j JobID) Home() Home { return homeOf(uint64(j)) }

// Home is the node that the client is connected to.
func (c ClientID) Home() Home { return homeOf(uint64(c)) }

// Home is the node that gave the lease.
func (l LeaseID) Home() Home { return homeOf(uint64(l)) }

// Home is the node that started the worker.
func (w WorkerID) Home() Home { return homeOf(uint64(w)) }

// String prints the job's number, after its home and a dash if that is not the first.
func (j JobID) String() string { return show(uint64(j)) }

// String prints the client as JobID.String does a job.
func (c ClientID) String() string { return show(uint64(c)) }

// String prints the lease as JobID.String does a job.
func (l LeaseID) String() string { return show(uint64(l)) }

// String prints the worker as JobID.String does a job.
func (w WorkerID) String() string { return show(uint64(w)) }

// ParseNumber reads the output of String of a job, client, lease or worker.
func ParseNumber[T JobID | ClientID | LeaseID | WorkerID](s string) (T, error) {
	home, number, ok := strings.Cut(s, "-")
	if !ok {
		home, number = "0", s
	}
	h, err := strconv.ParseUint(home, 10, HomeBits)
	n, errN := strconv.ParseUint(number, 10, NumberBits)
	if err = cmp.Or(err, errN); err != nil {
		return 0, fmt.Errorf("%q: want NUMBER or HOME-NUMBER: %v: %w", s, err, ErrBadID)
	}
	return T(Home(h).ID(n)), nil
}

func homeOf(id uint64) Home { return Home(id >> NumberBits & uint64(MaxHome)) }

func show(id uint64) string {
	if h := homeOf(id); h != 0 {
		return h.String() + "-" + strconv.FormatUint(id&MaxNumber, 10)
	}
	return strconv.FormatUint(id&MaxNumber, 10)
}
