package modules

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"mobula/internal/errs"
)

// The bounds.
const (
	MaxBytes   = 32 << 20 // of all files, before they are compressed
	MaxEntries = 20_000   // files and directories that may go along
	MaxNames   = 1 << 20  // names that are read, of data beside the modules too
	maxDepth   = 64
)

// Pack writes a zip of the modules below the directories. What is of the directory roots[i] is in the zip's directory i.
func Pack(w io.Writer, roots []string) error {
	z := zip.NewWriter(w)
	p := packer{zip: z, left: MaxEntries, names: MaxNames}
	for i, root := range roots {
		p.root = root
		if err := p.dir(root, strconv.Itoa(i), false, nil); err != nil {
			return err
		}
	}
	return z.Close()
}

type packer struct {
	zip   *zip.Writer
	root  string
	left  int // entries that may go along still
	names int // and names that may be read
	bytes int64
}

// inode tells a directory from others, by whatever path it is reached.
type inode struct{ dev, ino uint64 }

// dir packs a directory under a name. whole: it is in a package, all of which goes along. above are the directories on the way to it.
func (p *packer) dir(path, name string, whole bool, above []inode) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // gone
	}
	st := info.Sys().(*syscall.Stat_t)
	here := inode{st.Dev, st.Ino}
	if slices.Contains(above, here) || len(above) == maxDepth {
		return nil // a link back
	}
	above = append(above, here)
	files, err := os.ReadDir(path)
	if err != nil {
		return nil // not for us to read: the driver cannot import from it either
	}
	if p.names -= len(files); p.names < 0 {
		return p.tooMany(MaxNames, "files")
	}
	for _, f := range files {
		if !whole && isData(f) {
			continue
		}
		if p.left--; p.left < 0 {
			return p.tooMany(MaxEntries, "modules and files of packages")
		}
		if err := p.entry(filepath.Join(path, f.Name()), name+"/"+f.Name(), f.Name(), whole, above); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) tooMany(n int, what string) error {
	return errs.New(errs.CodeRuntimeSetup, "the driver imports modules from %s, in which there are more than %d %s, so they cannot be sent to other nodes: %s", p.root, n, what, advice)
}

// isData tells whether nothing can be imported from an entry outside of packages, by its name and type alone: where data lies beside a script there may be much of it.
func isData(f os.DirEntry) bool {
	return !isModule(f.Name()) && (f.Type().IsRegular() || !importable(f.Name()))
}

// isModule tells whether a file's name can be that of a module.
func isModule(name string) bool {
	return strings.HasSuffix(name, ".py") || strings.HasSuffix(name, ".so")
}

// ownBinary is where the runtime's own Python package has its executable, which each node has already.
const ownBinary = "/mobula/bin"

const advice = "put the program into a directory of its own"

func (p *packer) entry(path, name, base string, whole bool, above []inode) error {
	info, err := os.Stat(path)
	switch {
	case err != nil || strings.HasPrefix(base, ".") || base == "__pycache__" || !trusted(info):
		return nil
	case info.IsDir():
		if !whole && !importable(base) || exists(path, "pyvenv.cfg") || strings.HasSuffix(path, ownBinary) {
			return nil
		}
		return p.dir(path, name, whole || exists(path, "__init__.py"), above)
	case info.Mode().IsRegular() && (whole || isModule(base)):
		return p.file(path, name)
	}
	return nil
}

func (p *packer) file(path, name string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // not for us to read
	}
	defer func() { _ = f.Close() }() // only ever read
	w, err := p.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(f, MaxBytes-p.bytes+1))
	if err != nil {
		return err
	}
	if p.bytes += n; p.bytes > MaxBytes {
		return errs.New(errs.CodeRuntimeSetup, "the driver imports modules from %s, and they have more than %d MiB, so they cannot be sent to other nodes: %s", p.root, MaxBytes>>20, advice)
	}
	return nil
}

// trusted tells whether a file is this user's or root's: a script in /tmp has others' beside it.
func trusted(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// importable tells whether a directory's name can be that of a package.
func importable(name string) bool {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return true
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
