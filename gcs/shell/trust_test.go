package shell

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mobula/internal/testkit"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/trusttest"
)

// openTrustTest is the authority's table of a server that ends with the test, a context to use it in, and its connection.
func openTrustTest(t *testing.T) (context.Context, *Trust, *nats.Conn) {
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
	return ctx, table, nc
}

func TestTheAuthoritysTableConforms(t *testing.T) {
	_, table, _ := openTrustTest(t)
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
	ctx, table, _ := openTrustTest(t)
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

// Reads are answered by the leader of the table's replicas, which alone has all that was acknowledged: a token that was just made is good at each server, and
// what was just revoked is renewed at none. A read of whichever replica is next (DIRECT.GET), or a list by a watch (CONSUMER), may be behind.
func TestTheAuthoritysTableIsReadFromItsLeader(t *testing.T) {
	ctx, table, nc := openTrustTest(t)
	var asked atomic.Pointer[string]
	for _, subject := range []string{"$JS.API.DIRECT.GET.>", "$JS.API.CONSUMER.>"} {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) { asked.Store(&m.Subject) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Write(ctx, "token.a", []byte("row"), 0); err != nil {
		t.Fatal(err)
	}
	if row, _, err := table.Read(ctx, "token.a"); err != nil || string(row) != "row" {
		t.Errorf("read is %q, %v", row, err)
	}
	if keys, err := table.Keys(ctx, "token."); err != nil || len(keys) != 1 {
		t.Errorf("listed are %q, %v", keys, err)
	}
	if err := nc.Flush(); err != nil { // what was asked before is seen by now
		t.Fatal(err)
	}
	if of := asked.Load(); of != nil {
		t.Errorf("a replica was asked that may be behind, by %s", *of)
	}
}
