package wire

import (
	"reflect"
	"testing"

	"mobula/internal/ids"
)

func TestInternTablesAreBounded(t *testing.T) {
	var d Decoder
	for i := range 5 * maxInterned {
		s := &Submit{Spec: &TaskSpec{ID: ids.RootTask(1, 1), Callsite: ids.RootTask(1, uint64(i)).String(), Opts: &TaskOptions{MaxRetries: int32(i)}}}
		got, err := d.Decode(KindSubmit, Append(nil, s))
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%+v, %v", got, err)
		}
		if len(d.table.options) > maxInterned || len(d.table.texts) > maxInterned {
			t.Fatalf("tables hold %d options and %d texts", len(d.table.options), len(d.table.texts))
		}
	}
	var c OptionsCache
	e := encoder{opts: &c}
	for range 5 * maxInterned {
		e.b = e.b[:0]
		e.options(4, &TaskOptions{Func: "f"})
		if len(c.m) > maxInterned {
			t.Fatalf("the sender's table holds %d", len(c.m))
		}
	}
}
