package state

// LogsRequest asks for the output of workers, including those that are gone. With the ID of a worker, as in lists,
// or of its log ("worker/3"), it asks for the end of its output. With the ID of a task it asks for the lines that
// name the task, of any worker. With an empty ID it asks which logs there are.
type LogsRequest struct {
	ID    string `json:"id,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // of each stream, at most; 0: DefaultLogBytes
	Node  string `json:"node,omitempty"`  // as in Query
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
	Worker  string `json:"worker"`            // "worker/3"
	Stream  string `json:"stream"`            // "out" or "err"
	Path    string `json:"path"`              // of the file that is written to; older parts lie beside it
	Size    int64  `json:"size"`              // bytes, of all parts that are kept
	Changed int64  `json:"changed"`           // by the clock of the node that was asked
	Omitted int64  `json:"omitted,omitempty"` // bytes before Text that were left out, or not searched
	Text    string `json:"text,omitempty"`
	Node    string `json:"node,omitempty"`  // where Path is; empty: the node that was asked is alone
	Error   string `json:"error,omitempty"` // why the node's logs are missing: all else but Node is empty
}
