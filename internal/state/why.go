package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/ids"
)

// maxWhy bounds the details of each part of a Line.
const maxWhy = 6

// Line is the whole explanation in one line: what is waited for, who holds it or makes it, and
// what that waits for in turn.
func (e *Explanation) Line() string {
	var parts []string
	for ; e != nil; e = e.Next {
		text := e.Kind + " " + e.ID + " " + e.Summary
		if more := e.Details[:min(len(e.Details), maxWhy)]; len(more) > 0 {
			text += " (" + strings.Join(more, "; ") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Explainer asks the node why an object is not there, and gives the answer in one line. ask is the
// client's Request. It fits client.Config.Explain.
func Explainer(ask func(ctx context.Context, method string, body []byte) ([]byte, error)) func(ctx context.Context, id ids.ObjectID) string {
	return func(ctx context.Context, id ids.ObjectID) string {
		body, err := cbor.Marshal(ExplainRequest{ID: id.String()})
		if err != nil {
			return err.Error()
		}
		var ex Explanation
		if body, err = ask(ctx, MethodExplain, body); err == nil {
			err = cbor.Unmarshal(body, &ex)
		}
		if err != nil {
			return fmt.Sprintf("the node does not say: %v", err)
		}
		return ex.Line()
	}
}
