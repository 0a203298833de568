package config

import "strings"

// closest is the known name that differs least from name, or empty if none is near.
func closest(name string, known []string) string {
	best, most := "", len(name)/3+2
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if strings.HasSuffix(k, "."+name) || strings.HasSuffix(k, "_"+name) {
			d = min(d, 1) // the section was forgotten
		}
		if d < most {
			best, most = k, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, replace or swap with the next one that
// makes b of a.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row := rows[(i-1)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
