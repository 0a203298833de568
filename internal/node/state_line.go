package node

import (
	"context"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/ids"
	"mobula/internal/state"
)

// explainLine is client.Config.Explain: a get that has waited long says what it waits for.
// ask is the client's Request. It is empty where the node does not know.
func explainLine(ctx context.Context, ask func(ctx context.Context, method string, body []byte) ([]byte, error), id ids.ObjectID) string {
	body, err := cbor.Marshal(state.ExplainRequest{ID: id.String()})
	if err != nil {
		return ""
	}
	reply, err := ask(ctx, state.MethodExplain, body)
	if err != nil {
		return err.Error()
	}
	var ex state.Explanation
	if cbor.Unmarshal(reply, &ex) != nil {
		return ""
	}
	line := ex.Summary
	for next := ex.Next; next != nil; next = next.Next {
		line += "; " + next.Kind + " " + next.ID + " " + next.Summary
	}
	return line
}
