package inspect

import (
	"errors"
	"testing"

	"mobula/internal/errs"
)

// Timelines that are begun and not read to their end are bounded.
func TestTimelinesThatAreNotReadAreBounded(t *testing.T) {
	n := New(Config{}, nil)
	for i := range maxDocuments + 1 {
		_, err := n.keepDocument([]byte("x"))
		if full := i == maxDocuments; errors.Is(err, errs.ErrBacklog) != full {
			t.Errorf("timeline %d: %v", i+1, err)
		}
	}
}
