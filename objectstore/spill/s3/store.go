package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

func init() {
	storage.Register("s3", openS3)
	storage.Register("mem", openMem)
}

const (
	suffix    = ".spill"
	partBytes = 8 << 20  // of an upload; S3 wants at least 5 MiB
	uploads   = 3        // parts of one file at a time
	rangeSize = 16 << 20 // of a download
	downloads = 4        // ranges of one object at a time
)

// Store is one session's keys in a bucket.
type Store struct {
	bucket  *blob.Bucket
	base    string // of every session: empty, or ends in a slash
	prefix  string // of this session's keys
	session string
	owner   storage.Owner // this process
	bufs    *storage.Buffers
	closing bool // the bucket is closed with the store
}

var _ storage.Storage = (*Store)(nil)

func openS3(ctx context.Context, u *url.URL, o storage.Options) (storage.Storage, error) {
	bucket, err := new(s3blob.URLOpener).OpenBucketURL(ctx, query(u))
	if err != nil {
		return nil, err
	}
	base := strings.Trim(u.Path, "/")
	if base != "" {
		base += "/"
	}
	s, err := open(ctx, &Store{bucket: bucket, base: base, closing: true}, o)
	if err != nil {
		return nil, errors.Join(err, bucket.Close())
	}
	return s, nil
}

// query turns off the SDK's own checksums, unless the URL asks for them: every object has one already, and not
// every S3 service supports them.
func query(u *url.URL) *url.URL {
	bare, q := *u, u.Query()
	for _, k := range []string{"request_checksum_calculation", "response_checksum_validation"} {
		if !q.Has(k) {
			q.Set(k, "when_required")
		}
	}
	bare.Path, bare.RawQuery = "", q.Encode()
	return &bare
}

var mems struct { // buckets by name, for the life of the process
	sync.Mutex
	byName map[string]*blob.Bucket
}

func openMem(ctx context.Context, u *url.URL, o storage.Options) (storage.Storage, error) {
	name := u.Host + u.Path
	mems.Lock()
	if mems.byName == nil {
		mems.byName = make(map[string]*blob.Bucket)
	}
	root := mems.byName[name]
	if root == nil {
		root = memblob.OpenBucket(nil)
		mems.byName[name] = root
	}
	mems.Unlock()
	return open(ctx, &Store{bucket: root}, o)
}

func open(ctx context.Context, s *Store, o storage.Options) (*Store, error) {
	s.session, s.prefix, s.bufs = o.Session, s.base+prefix+o.Session+"/", o.Buffers
	if err := s.acquire(ctx, o); err != nil {
		return nil, err
	}
	s.sweep(ctx)
	return s, nil
}

func (s *Store) key(file uint64) string { return fmt.Sprintf("%s%016x%s", s.prefix, file, suffix) }

// Put implements storage.Storage.
func (s *Store) Put(ctx context.Context, file uint64, st *format.Stream) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Cancelling its context aborts a writer's upload; Close does not.
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	w, err := s.bucket.NewWriter(ctx, s.key(file), &blob.WriterOptions{
		BufferSize: partBytes, MaxConcurrency: uploads, ContentType: "application/octet-stream", DisableContentTypeDetection: true,
	})
	if err != nil {
		return typed(err, "write spill file", storage.ErrGone)
	}
	for b := st.Next(); b != nil && err == nil; b = st.Next() {
		for _, p := range b.Pieces {
			if _, err = w.Write(p); err != nil {
				break
			}
		}
		b.Free()
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, st.Err()); err != nil {
		abort()
	}
	return typed(errors.Join(err, w.Close()), "write spill file", storage.ErrGone)
}

// Read implements storage.Storage.
func (s *Store) Read(ctx context.Context, file uint64, off uint64, dst []byte) (uint32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make([]chan error, (len(dst)+rangeSize-1)/rangeSize)
	for i := range parts {
		parts[i] = make(chan error, 1)
	}
	part := func(i int) []byte { return dst[i*rangeSize : min((i+1)*rangeSize, len(dst))] }
	var wg sync.WaitGroup
	defer wg.Wait() // the goroutines use dst until then
	for lane := range min(downloads, len(parts)) {
		wg.Go(func() {
			for i := lane; i < len(parts); i += downloads {
				parts[i] <- s.readRange(ctx, file, off+uint64(i)*rangeSize, part(i))
			}
		})
	}
	var crc uint32
	for i := range parts {
		if err := <-parts[i]; err != nil {
			cancel()
			return 0, err
		}
		crc = format.Extend(crc, part(i))
	}
	return crc, nil
}

func (s *Store) readRange(ctx context.Context, file uint64, off uint64, dst []byte) error {
	what := fmt.Sprintf("read %d bytes at %d of spill file %s", len(dst), off, s.key(file))
	r, err := s.bucket.NewRangeReader(ctx, s.key(file), int64(off), int64(len(dst)), nil)
	if err != nil {
		return typed(err, what, spill.ErrMissing)
	}
	_, err = io.ReadFull(r, dst)
	err = errors.Join(err, r.Close())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the file ends before them: %w", what, spill.ErrCorrupt)
	}
	return typed(err, what, spill.ErrMissing)
}

// ReadMany implements storage.Storage with one request.
func (s *Store) ReadMany(ctx context.Context, file uint64, parts []storage.Part) error {
	off, size := storage.Span(parts)
	buf := s.bufs.Get()
	defer s.bufs.Put(buf)
	if err := s.readRange(ctx, file, off, buf[:size]); err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		copy(p.Dst, buf[p.Off-off:])
		p.CRC = format.Checksum(p.Dst)
	}
	return nil
}

// Delete implements storage.Storage.
func (s *Store) Delete(ctx context.Context, file uint64) error {
	err := s.bucket.Delete(ctx, s.key(file))
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return typed(err, "delete spill file", storage.ErrGone)
}

// List implements storage.Storage.
func (s *Store) List(ctx context.Context) ([]storage.File, error) {
	var out []storage.File
	for it := s.bucket.List(&blob.ListOptions{Prefix: s.prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, typed(err, "list spill files", storage.ErrGone)
		}
		digits, ok := strings.CutSuffix(o.Key[len(s.prefix):], suffix)
		n, err := strconv.ParseUint(digits, 16, 64)
		if ok && err == nil && len(digits) == 16 {
			out = append(out, storage.File{Number: n, Size: uint64(o.Size)})
		}
	}
}

// Probe implements storage.Storage. A bucket is unlimited.
func (s *Store) Probe(ctx context.Context, write bool) (spill.Capacity, error) {
	if !write {
		return spill.Capacity{}, nil
	}
	name := s.prefix + "probe"
	if err := s.bucket.WriteAll(ctx, name, []byte(name), nil); err != nil {
		return spill.Capacity{}, typed(err, "probe", storage.ErrGone)
	}
	return spill.Capacity{}, typed(s.bucket.Delete(ctx, name), "probe", storage.ErrGone)
}

// typed adds the sentinel for an error of the service; notFound is the one for a missing key.
func typed(err error, what string, notFound error) error {
	if err == nil {
		return nil
	}
	var api smithy.APIError
	code := ""
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var kind error
	switch c := gcerrors.Code(err); {
	case code == "NoSuchBucket":
		kind = storage.ErrGone
	case code == "InvalidRange":
		kind = spill.ErrCorrupt
	case strings.Contains(code, "Quota"), strings.Contains(code, "StorageFull"), c == gcerrors.ResourceExhausted:
		kind = spill.ErrFull
	case c == gcerrors.NotFound:
		kind = notFound
	case c == gcerrors.PermissionDenied, code == "AccessDenied":
		kind = storage.ErrReadOnly
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, kind, err)
}
