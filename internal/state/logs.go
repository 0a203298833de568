package state

// LogsRequest asks for what workers wrote to their output, also those that are gone. ID is
// a worker's, as lists show it, or its log's ("worker/3"): then the end of what it wrote; or a task's:
// then the lines that name it, whichever workers ran it; or empty: which logs there are.
type LogsRequest struct {
	ID    string `json:"id,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // of each stream, at most; 0: DefaultLogBytes
}

// The bounds of a LogsRequest's Bytes.
const (
	DefaultLogBytes = 64 << 10
	MaxLogBytes     = 4 << 20
)

// Logs answers a LogsRequest, the oldest log first.
type Logs struct {
	Streams []LogStream `json:"streams"`
}

// LogStream is what one worker wrote to one of its outputs.
type LogStream struct {
	Worker  string `json:"worker"` // "worker/3"
	Stream  string `json:"stream"` // "out" or "err"
	Path    string `json:"path"`   // of the file that is written to; older parts lie beside it
	Size    int64  `json:"size"`   // bytes, of all parts that are kept
	Changed int64  `json:"changed"`
	Omitted int64  `json:"omitted,omitempty"` // bytes before Text that were left out, or not searched
	Text    string `json:"text,omitempty"`
}
