package modules

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"mobula/internal/errs"
)

// Unpack writes what Pack has packed below a directory, which exists: the modules of roots[i] in its directory i.
func Unpack(file *os.File, dir string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(file, info.Size())
	if err != nil {
		return errs.New(errs.CodeProtocol, "the modules of a Python driver: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	left := int64(MaxBytes)
	for _, f := range z.File {
		n, err := unpack(root, f, left)
		if err != nil {
			return errors.Join(err, root.Close())
		}
		left -= n
	}
	return root.Close()
}

// unpack writes one file, of at most some bytes.
func unpack(root *os.Root, f *zip.File, most int64) (n int64, err error) {
	if !fs.ValidPath(f.Name) || f.Name == "." || !f.Mode().IsRegular() || f.UncompressedSize64 > uint64(most) {
		return 0, errs.New(errs.CodeProtocol, "the modules of a Python driver have %q of %d bytes, which nobody packs", f.Name, f.UncompressedSize64)
	}
	if err := root.MkdirAll(path.Dir(f.Name), 0o700); err != nil {
		return 0, err
	}
	in, err := f.Open()
	if err != nil {
		return 0, errs.New(errs.CodeProtocol, "the modules of a Python driver: %q: %v", f.Name, err)
	}
	defer func() { _ = in.Close() }() // only ever read
	out, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, most))
	return n, errors.Join(err, out.Close())
}
