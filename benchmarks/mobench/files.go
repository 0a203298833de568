package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"mobula/benchmarks/floor"
)

// spillFiles are the files with objects under a spill directory.
func spillFiles(dir string) (paths []string, sizes []int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".spill") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // deleted since
		}
		paths, sizes = append(paths, path), append(sizes, info.Size())
		return nil
	})
	return paths, sizes, err
}

// fileSize is the size of the files that the spiller made, the middle one; otherwise if there are none.
func fileSize(dir string, otherwise int64) int64 {
	_, sizes, err := spillFiles(dir)
	if err != nil || len(sizes) == 0 {
		return otherwise
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2]
}

// evictAll takes the spill files out of the page cache.
func evictAll(dir string) error {
	paths, _, err := spillFiles(dir)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := floor.Evict(p); err != nil && !errors.Is(err, fs.ErrNotExist) { // the spiller deletes in its own time
			return err
		}
	}
	return nil
}
