package cloud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"gocloud.dev/blob/s3blob"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage/storagetest"
)

// A directory and a bucket side by side, through the spiller.
func TestSpillerOverDirectoryAndBucket(t *testing.T) {
	u := s3Server(t)
	dir := t.TempDir()
	cfg := spill.Default("node")
	cfg.URLs, cfg.MinFileBytes = []string{dir, u.String()}, 1<<20
	s, err := spill.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sizes := make([]int, 12)
	for i := range sizes {
		sizes[i] = 400_000
	}
	objs := storagetest.Objects(sizes...)
	type answer struct {
		locs []spill.Location
		err  error
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	wrote := make(chan answer, 1)
	s.Write(objs, func(l []spill.Location, err error) { wrote <- answer{l, err} })
	var w answer
	select {
	case w = <-wrote:
	case <-ctx.Done():
		t.Fatal("write: no answer")
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	targets := map[uint16]int{}
	for i, l := range w.locs {
		targets[l.Target]++
		dst := make([]byte, l.Size)
		read := make(chan error, 1)
		s.Read(l, dst, func(err error) { read <- err })
		select {
		case err := <-read:
			if err != nil || !bytes.Equal(dst, objs[i].Data) {
				t.Errorf("object %d on target %d: %v", i, l.Target, err)
			}
		case <-ctx.Done():
			t.Fatal("read: no answer")
		}
	}
	if targets[0] != 6 || targets[1] != 6 {
		t.Errorf("12 objects of one size are spread %v", targets)
	}
	if _, _, err := s.Fallback(4096, false); err != nil {
		t.Errorf("a mapped file beside a bucket: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	bucket, err := new(s3blob.URLOpener).OpenBucketURL(ctx, query(u))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	if o, err := bucket.List(nil).Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("left in the bucket: %v, %v", o, err)
	}
}
