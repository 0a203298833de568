package observe

import (
	"log/slog"
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

// What workers said of themselves that are gone is forgotten; what those said that are there is not.
func TestReportsOfWorkersThatAreGoneAreForgotten(t *testing.T) {
	o := New(Config{Log: slog.New(slog.DiscardHandler), Known: func(id ids.ClientID) bool { return id <= 3 }})
	defer o.Close()
	for i := range 500 {
		o.Note(ids.ClientID(i+1), &wire.Stats{HeapBytes: uint64(i + 1)})
	}
	if k := len(o.stats); k > 70 {
		t.Errorf("%d reports are kept of workers that are gone", k)
	}
	if said, ok := o.Report(3); !ok || said.HeapBytes != 3 {
		t.Errorf("of one that is there: %+v, %v", said, ok)
	}
}
