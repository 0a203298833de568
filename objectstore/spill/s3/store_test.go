package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
	"mobula/objectstore/spill/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// s3Server is an S3 service in this process with one bucket; the URL addresses a prefix in it.
func s3Server(t testing.TB) *url.URL {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("spill"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	u, err := url.Parse("s3://spill/nodes/a?region=test&use_path_style=true&endpoint=" + url.QueryEscape(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mem(t testing.TB) *url.URL { return &url.URL{Scheme: "mem", Host: t.Name()} }

func openStore(t testing.TB, u *url.URL, o storage.Options) *Store {
	t.Helper()
	s, err := storage.Open(context.Background(), u, o)
	if err != nil {
		t.Fatalf("open %s: %v", u, err)
	}
	return s.(*Store)
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		url  func(testing.TB) *url.URL
	}{{"s3", s3Server}, {"mem", mem}} {
		t.Run(c.name, func(t *testing.T) {
			u := c.url(t)
			storagetest.Run(t, storagetest.Subject{
				Open: func(t *testing.T, session string, bufs *storage.Buffers) storage.Storage {
					return openStore(t, u, storage.Options{Session: session, Buffers: bufs})
				},
				Damage: func(t *testing.T, s storage.Storage, file uint64, change func([]byte) []byte) {
					b, key := s.(*Store).bucket, s.(*Store).key(file)
					p, err := b.ReadAll(context.Background(), key)
					if err != nil {
						t.Fatal(err)
					}
					if err := b.WriteAll(context.Background(), key, change(p), nil); err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

func TestFaultsOfABucket(t *testing.T) {
	u := s3Server(t)
	absent := *u
	absent.Host = "absent"
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	if _, err := storage.Open(context.Background(), &absent, storage.Options{Session: "s", Buffers: bufs}); !errors.Is(err, storage.ErrGone) {
		t.Errorf("open in a bucket that does not exist: got %v, want ErrGone", err)
	}
	s := openStore(t, u, storage.Options{Session: "s", Buffers: bufs})
	defer s.Close(true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if _, err := s.Read(ctx, 1, 0, make([]byte, 10)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read past its deadline: %v", err)
	}
}

func TestSessionsOfBuckets(t *testing.T) {
	for _, c := range []struct {
		name string
		url  func(testing.TB) *url.URL
	}{{"s3", s3Server}, {"mem", mem}} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			u := c.url(t)
			bufs := storage.NewBuffers(1)
			defer bufs.Trim()
			s := openStore(t, u, storage.Options{Session: "mine", Buffers: bufs})
			defer s.Close(true)
			if _, err := storage.Open(ctx, u, storage.Options{Session: "mine", Buffers: bufs}); !errors.Is(err, storage.ErrInUse) {
				t.Errorf("second open: got %v, want ErrInUse", err)
			}
			// Sessions whose process is gone, and what is known of them.
			for _, d := range []struct {
				name   string
				change func(*owner)
				swept  bool
			}{
				{"dead", func(o *owner) { o.Start = "1" }, true},
				{"dead-awaited", func(o *owner) { o.Start, o.Restarts = "1", true }, false},
				{"dead-forgotten", func(o *owner) { o.Start, o.Restarts, o.Opened = "1", true, time.Now().Add(-2*keepFor) }, true},
				{"elsewhere", func(o *owner) { o.Boot, o.Start = "another", "1" }, false},
				{"container", func(o *owner) { o.PIDs, o.Start = "pid:[1]", "1" }, false},
				{"live", func(*owner) {}, false},
			} {
				x := openStore(t, u, storage.Options{Session: d.name, Buffers: bufs})
				if err := x.Put(ctx, 1, format.NewStream(format.Header{Session: d.name}, storagetest.Objects(10), bufs)); err != nil {
					t.Fatal(err)
				}
				o := storage.Self(storage.Options{})
				d.change(&o)
				p, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if err := x.bucket.WriteAll(ctx, x.prefix+ownerKey, p, nil); err != nil {
					t.Fatal(err)
				}
				other := openStore(t, u, storage.Options{Session: "other", Buffers: bufs}) // sweeps
				files, err := x.List(ctx)
				if err != nil || (len(files) == 0) != d.swept {
					t.Errorf("%s: %d files are left, %v; swept should be %v", d.name, len(files), err, d.swept)
				}
				for _, s := range []*Store{other, x} {
					if err := s.Close(true); err != nil {
						t.Errorf("close: %v", err)
					}
				}
			}
			if err := s.Put(ctx, 5, format.NewStream(format.Header{Session: "mine"}, storagetest.Objects(10), bufs)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(false); err != nil {
				t.Fatal(err)
			}
			s.closing = false // the deferred close is a second one
			again := openStore(t, u, storage.Options{Session: "mine", Buffers: bufs})
			defer again.Close(true)
			if files, err := again.List(ctx); err != nil || len(files) != 1 {
				t.Errorf("a session that was closed to be kept has %v, %v", files, err)
			}
		})
	}
}

func ExampleStore() {
	u, _ := storage.Parse("mem://example")
	s, err := storage.Open(context.Background(), u, storage.Options{Session: "node", Buffers: storage.NewBuffers(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := s.List(context.Background())
	fmt.Println(len(files), err, s.Close(true))
	// Output: 0 <nil> <nil>
}
