package modules

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
)

// tree makes files; a name that ends with " -> target" is a link.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		name, target, link := strings.Cut(f, " -> ")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte("# "+name), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// unpacked packs directories and gives what is unpacked of them.
func unpacked(t *testing.T, roots ...string) (names []string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := Pack(file, roots); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Unpack(file, dir); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestWhatCanBeImportedGoesAlong(t *testing.T) {
	main := tree(t,
		"main.py", "helper.py", "fast.so", "data.csv", ".secret.py", "notes/readme.txt",
		"pkg/__init__.py", "pkg/table.json", "pkg/sub/deep.py", "pkg/data-files/x.bin", "pkg/__pycache__/a.pyc", "pkg/.hidden/a.py",
		"space/part.py", "space/part.txt", "not-a-package/a.py", ".git/hook.py", "venv/pyvenv.cfg", "venv/lib/site.py",
		"loop -> .", "linked.py -> helper.py", "gone.py -> nothing",
	)
	lib := tree(t, "lib.py")
	want := []string{
		"0/fast.so", "0/helper.py", "0/linked.py", "0/main.py", "0/pkg/__init__.py", "0/pkg/data-files/x.bin", "0/pkg/sub/deep.py", "0/pkg/table.json", "0/space/part.py", "1/lib.py",
	}
	if got := unpacked(t, main, lib, filepath.Join(lib, "none")); !slices.Equal(got, want) {
		t.Errorf("what goes along is\n%q\nwant\n%q", got, want)
	}
}

func TestTheSameFilesGiveTheSameBytes(t *testing.T) {
	var zips [2]bytes.Buffer
	for i := range zips {
		if err := Pack(&zips[i], []string{tree(t, "b.py", "a.py", "p/__init__.py")}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(zips[0].Bytes(), zips[1].Bytes()) {
		t.Error("they differ")
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	large := tree(t, "a.py")
	if err := os.Truncate(filepath.Join(large, "a.py"), MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if err := Pack(&bytes.Buffer{}, []string{large}); !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), large) {
		t.Errorf("a large file: %v", err)
	}
	many := tree(t, "a.py", "b.py", "c/d.py", "c/e.py")
	for left := range 6 {
		p := packer{zip: zip.NewWriter(&bytes.Buffer{}), root: many, left: left, names: MaxNames}
		err := p.dir(many, "0", false, nil)
		if left < 5 && (!errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), many)) || left == 5 && err != nil {
			t.Errorf("five names, of which %d may be looked at: %v", left, err)
		}
	}
	p := packer{zip: zip.NewWriter(&bytes.Buffer{}), root: many, left: 5, names: 4}
	if err := p.dir(many, "0", false, nil); !errors.Is(err, errs.ErrRuntimeSetup) || !strings.Contains(err.Error(), many) {
		t.Errorf("more names than may be read: %v", err)
	}
}

// A script beside a great many files of data is sent without them.
func TestDataBesideAScriptIsPassedOver(t *testing.T) {
	root := tree(t, "main.py", "helper.py", "data/part-0", "data/README")
	for i := range MaxEntries + 1 {
		if err := os.Link(filepath.Join(root, "data/README"), filepath.Join(root, fmt.Sprintf("part-%d.csv", i))); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := unpacked(t, root), []string{"0/helper.py", "0/main.py"}; !slices.Equal(got, want) {
		t.Errorf("what goes along is %q, want %q", got, want)
	}
}

// A zip that nobody here packs writes nothing outside the directory, and no more than the bound.
func TestAStrangeZipIsRefused(t *testing.T) {
	for _, name := range []string{"../out.py", "/out.py", "a/../../out.py", ".", "0/dir/"} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		refused(t, name, b.Bytes())
	}
	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	w, err := z.Create("0/a.py")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, MaxBytes+1)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, "bomb", bomb.Bytes())
	refused(t, "no zip", []byte("no zip"))
}

func refused(t *testing.T, name string, data []byte) {
	t.Helper()
	top := t.TempDir()
	path, dir := filepath.Join(top, "zip"), filepath.Join(top, "in", "here")
	if err := errors.Join(os.WriteFile(path, data, 0o600), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := Unpack(f, dir); !errors.Is(err, errs.ErrProtocol) {
		t.Errorf("%s: %v", name, err)
	}
	if out, err := filepath.Glob(filepath.Join(top, "*", "*.py")); err != nil || len(out) > 0 {
		t.Errorf("%s: it wrote %q, %v", name, out, err)
	}
}
