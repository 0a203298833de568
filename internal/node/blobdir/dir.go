package blobdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mobula/internal/safefs"
)

// unfinished is how the name of a file ends that is being written.
const unfinished = ".new"

// Entry is a blob in a directory.
type Entry struct {
	Hash [32]byte
	Size uint64
	Used int64 // its time of modification, in Unix nanoseconds: see Touch
}

// List gives the blobs of a directory by their names, and removes what was left unfinished. A directory that does not exist has none.
func List(dir string) ([]Entry, error) {
	if err := safefs.CheckDir(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, f := range files {
		if strings.HasSuffix(f.Name(), unfinished) {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return nil, err
			}
			continue
		}
		h, err := hex.DecodeString(f.Name())
		info, infoErr := f.Info()
		if err != nil || infoErr != nil || len(h) != sha256.Size || !info.Mode().IsRegular() {
			continue // not ours
		}
		out = append(out, Entry{Hash: [32]byte(h), Size: uint64(info.Size()), Used: info.ModTime().UnixNano()})
	}
	return out, nil
}

// Path is where a blob of a directory lies.
func Path(dir string, hash [32]byte) string { return filepath.Join(dir, hex.EncodeToString(hash[:])) }

// Check tells whether a blob lies in a directory. A file that is damaged is removed.
func Check(dir string, hash [32]byte) (bool, error) {
	f, err := safefs.OpenFile(Path(dir, hash), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sum, err := Sum(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if sum != hash {
		return false, os.Remove(Path(dir, hash))
	}
	return true, nil
}

// Sum is the SHA-256 of a file from its beginning.
func Sum(f *os.File) (sum [32]byte, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return sum, err
	}
	return [32]byte(h.Sum(nil)), nil
}
