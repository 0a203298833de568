package main

import (
	"math"
	"slices"
)

const (
	least       = 1.05  // the ratio from which a difference is worth a word
	fewest      = 5     // rounds, below which nothing is marked
	significant = 0.001 // how likely it may be that chance alone marks any of a run's rows
)

// verdict is what the rounds of a row say.
type verdict struct {
	ratio float64 // of costs, new/base: above 1 is slower
	self  float64 // base/base, odd rounds against even ones
	mark  string  // "slower", "faster" or ""
}

// judge compares a row's sides. It is one of so many rows that are judged: of forty rows at a chance of 0.001 each, every 25th run would mark one.
func (r *row) judge(among int) verdict {
	v := verdict{ratio: math.NaN(), self: math.NaN()}
	if len(r.news) == 0 || len(r.bases) == 0 {
		return v
	}
	v.ratio = median(r.news) / median(r.bases)
	if len(r.bases) > 1 {
		var halves [2][]float64
		for i, b := range r.bases {
			halves[i%2] = append(halves[i%2], b)
		}
		v.self = median(halves[0]) / median(halves[1])
	}
	news, bases := settled(r.news), settled(r.bases)
	n, m := len(news), len(bases)
	if min(n, m) < fewest {
		return v
	}
	far := max(math.Log(least), 2*math.Abs(math.Log(v.self)))
	// With few rounds no order of them is rare enough: then the sides must not mix at all.
	if math.Abs(math.Log(v.ratio)) <= far || ranksChance(news, bases) > max(significant/float64(among), 2/binomial(n+m, n)*1.0001) {
		return v
	}
	v.mark = "slower"
	if v.ratio < 1 {
		v.mark = "faster"
	}
	return v
}

// settled is the costs without the greatest, where enough are left: the machine is slow now and then, and never fast.
func settled(costs []float64) []float64 {
	if len(costs) <= fewest {
		return costs
	}
	s := slices.Sorted(slices.Values(costs))
	return s[:len(s)-1]
}

// median is the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// ranksChance is how likely two samples of one distribution are ordered as clearly as these, in either direction: the exact two-sided
// test of Mann and Whitney. Equal values count as half.
func ranksChance(a, b []float64) float64 {
	var u float64
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
			}
		}
	}
	n, m := len(a), len(b)
	u = min(u, float64(n*m)-u)
	var below float64
	for k, ways := range orders(n, m) {
		if float64(k) <= u {
			below += ways
		}
	}
	return min(1, 2*below/binomial(n+m, n))
}

// orders counts, for each number of pairs in which the first is greater, the orders of n and m values that have it.
func orders(n, m int) []float64 {
	// ways[i][k]: i values of the first kind placed so far, k pairs. Each value of the second kind, from the least up, is above those placed.
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for j := range m + 1 { // values of the second kind below the next ones of the first
		for i := 1; i <= n; i++ {
			for k := j; k <= n*m; k++ {
				ways[i][k] += ways[i-1][k-j]
			}
		}
	}
	return ways[n]
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := 1; i <= k; i++ {
		b *= float64(n-k+i) / float64(i)
	}
	return b
}
