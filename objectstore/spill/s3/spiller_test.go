package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/s3blob"

	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/shell"
	"mobula/objectstore/spill/storage"
	"mobula/objectstore/spill/storage/storagetest"
)

// A directory and a bucket side by side, through the spiller.
func TestSpillerOverDirectoryAndBucket(t *testing.T) {
	u := s3Server(t)
	dir := t.TempDir()
	cfg := shell.Default("node")
	cfg.URLs, cfg.MinFileBytes = []string{dir, u.String()}, 1<<20
	s, err := shell.Open(cfg)
	if err == nil {
		err = s.Start(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	sizes := make([]int, 12)
	for i := range sizes {
		sizes[i] = 400_000
	}
	objs := storagetest.Objects(sizes...)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	locs := write(t, ctx, s, objs)
	targets := map[uint16]int{}
	for _, l := range locs {
		targets[l.Target]++
	}
	intact(t, ctx, "as written", s, locs, objs)
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

// write writes objects and gives their places.
func write(t *testing.T, ctx context.Context, s *shell.Spiller, objs []format.Object) []spill.Location {
	t.Helper()
	type answer struct {
		locs []spill.Location
		err  error
	}
	wrote := make(chan answer, 1)
	s.Write(objs, func(l []spill.Location, err error) { wrote <- answer{l, err} })
	select {
	case w := <-wrote:
		if w.err != nil {
			t.Fatal(w.err)
		}
		return w.locs
	case <-ctx.Done():
		t.Fatal("write: no answer")
	}
	return nil
}

// intact reads objects back.
func intact(t *testing.T, ctx context.Context, when string, s *shell.Spiller, locs []spill.Location, objs []format.Object) {
	t.Helper()
	for i, l := range locs {
		dst := make([]byte, l.Size)
		read := make(chan error, 1)
		s.Read(l, dst, func(err error) { read <- err })
		select {
		case err := <-read:
			if err != nil || !bytes.Equal(dst, objs[i].Data) {
				t.Errorf("%s: object %d on target %d: %v", when, i, l.Target, err)
			}
		case <-ctx.Done():
			t.Fatal("read: no answer")
		}
	}
}

// Two hosts that were given one prefix keep their files side by side: neither start nor end nor crash of one touches what the other has, and
// neither takes the other's session where both have the same name.
func TestTwoHostsUnderOnePrefix(t *testing.T) {
	u := s3Server(t)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	bucket, err := new(s3blob.URLOpener).OpenBucketURL(ctx, query(u))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	config := func(node string) shell.Config {
		cfg := shell.Default(node)
		cfg.URLs, cfg.MinFileBytes, cfg.Node, cfg.Restarts = []string{u.String()}, 1<<20, node, true
		return cfg
	}
	open := func(cfg shell.Config) *shell.Spiller {
		t.Helper()
		s, err := shell.Open(cfg)
		if err == nil {
			err = s.Start(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	objs := storagetest.Objects(400_000, 400_000, 400_000, 400_000)
	end := func(s *shell.Spiller) {
		t.Helper()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	// elsewhere has what lies under a session be of another host, where its process number says nothing of this one's processes.
	elsewhere := func(session string) {
		t.Helper()
		key := strings.Trim(u.Path, "/") + "/" + prefix + session + "/" + ownerKey
		var o owner
		b, err := bucket.ReadAll(ctx, key)
		if err == nil {
			err = json.Unmarshal(b, &o)
		}
		if err != nil {
			t.Fatal(err)
		}
		o.Boot, o.Start, o.Opened = "another host's", "1", time.Now().Add(-2*keepFor)
		if err := bucket.WriteAll(ctx, key, o.Encode(), nil); err != nil {
			t.Fatal(err)
		}
	}

	one := open(config("one"))
	ones := write(t, ctx, one, objs)
	elsewhere("one")
	two := open(config("two"))
	twos := write(t, ctx, two, objs)
	intact(t, ctx, "the other has started", one, ones, objs)
	intact(t, ctx, "it started second", two, twos, objs)
	same := config("one")
	same.Node = "two"
	if s, err := shell.Open(same); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("the other's session is opened: %v, %v", s, err)
	}
	intact(t, ctx, "the other wanted its session", one, ones, objs)
	end(two)
	intact(t, ctx, "the other has ended", one, ones, objs)

	two = open(config("two"))
	twos = write(t, ctx, two, objs)
	elsewhere("two")
	end(one)
	intact(t, ctx, "the first has ended", two, twos, objs)
	one = open(config("one"))
	intact(t, ctx, "the first has started again", two, twos, objs)
	end(one)
	end(two)
	if o, err := bucket.List(nil).Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("left in the bucket: %v, %v", o, err)
	}
}
