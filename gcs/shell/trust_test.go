package shell

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"mobula/internal/testkit"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/trusttest"
)

// openTrustTest is the authority's table of a server that ends with the test, and a context to use it in.
func openTrustTest(t *testing.T) (context.Context, *Trust) {
	t.Helper()
	srv, nc, _ := openTest(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	t.Cleanup(func() {
		cancel()
		nc.Close()
		srv.Close()
	})
	table, err := OpenTrust(ctx, nc, 1)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, table
}

func TestTheAuthoritysTableConforms(t *testing.T) {
	_, table := openTrustTest(t)
	trusttest.Conform(t, table)
}

// losingBucket is a bucket whose first write is made and not answered.
type losingBucket struct {
	jetstream.KeyValue
	lost int
}

func (l *losingBucket) Create(ctx context.Context, key string, row []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	revision, err := l.KeyValue.Create(ctx, key, row, opts...)
	if l.lost++; l.lost == 1 {
		return 0, context.DeadlineExceeded
	}
	return revision, err
}

// A write of the authority's whose answer is lost, as where the servers elect a leader, is not taken for another server's.
func TestAWriteOfTheAuthoritysWithoutAnAnswer(t *testing.T) {
	ctx, table := openTrustTest(t)
	bucket := &losingBucket{KeyValue: table.kv}
	table.kv = bucket
	if err := table.Write(ctx, "a", []byte("mine"), 0); err != nil || bucket.lost != 2 {
		t.Errorf("the own row, after %d attempts: %v", bucket.lost, err)
	}
	bucket.lost = 0
	if err := table.Write(ctx, "a", []byte("another's"), 0); !errors.Is(err, authority.ErrConflict) {
		t.Errorf("another's row: %v", err)
	}
}
