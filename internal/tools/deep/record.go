package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
)

// fresh is how long a row counts: the deep run is whole when each part has one that is not older.
const fresh = 14 * 24 * time.Hour

// record is a row of docs/deep.md.
type record struct {
	day     time.Time
	commit  string
	part    string
	result  string
	minutes float64
}

func (r record) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %.1f |", r.day.Format(time.DateOnly), r.commit, r.part, r.result, r.minutes)
}

// add writes a row at the end of the file.
func add(file string, r record) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, r)
	if end := f.Close(); err == nil {
		err = end
	}
	return err
}

// last reads the newest row of each part.
func last(file string) (map[string]record, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	rows := make(map[string]record)
	for s := bufio.NewScanner(f); s.Scan(); {
		r, ok := parse(s.Text())
		if old, known := rows[r.part]; ok && (!known || !r.day.Before(old.day)) {
			rows[r.part] = r
		}
	}
	return rows, nil
}

// parse reads a row. Other lines, those of the table's head too, have no day.
func parse(line string) (record, bool) {
	cells := strings.Split(strings.Trim(line, "| "), "|")
	if len(cells) != 5 {
		return record{}, false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	day, err := time.Parse(time.DateOnly, cells[0])
	r := record{day: day, commit: cells[1], part: cells[2], result: cells[3]}
	_, bad := fmt.Sscan(cells[4], &r.minutes)
	return r, err == nil && bad == nil
}
