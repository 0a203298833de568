package ship

import (
	"encoding/binary"

	"mobula/graph/run"
	"mobula/graph/spec"
	"mobula/internal/ids"
	"mobula/wire"
)

// How many bytes of payloads go into one object. A running graph keeps two such objects in memory, beside the memory of
// its tasks.
const (
	blobBytes = 8 << 20
	blobShare = 64 // and at most the store's size divided by this
)

// request is a plan as the node takes it.
type request struct {
	*packer
	run.Request
	notes map[*spec.Annotations]int32
	blobs []int32 // objects that hold payloads
	blob  []byte  // the one being filled
	count int32   // of its payloads
	most  int     // bytes in one
}

// newRequest packs all tasks of a plan.
func newRequest(k *packer, saturation float64, failures int) (*request, error) {
	r := &request{packer: k, notes: make(map[*spec.Annotations]int32), most: blobBytes, Request: run.Request{
		Version: run.Version, Func: Func, Meta: k.bytesMeta(), Saturation: saturation, Failures: int32(failures),
	}}
	if size := k.tc.Client.SegmentSize(); size > 0 {
		r.most = int(min(blobBytes, size/blobShare))
	}
	for t := range k.p.Tasks {
		if err := r.add(int32(t)); err != nil {
			return nil, err
		}
	}
	for _, t := range k.p.Wanted {
		r.Wanted = appendNumber(r.Wanted, t)
	}
	return r, r.flush()
}

func (r *request) add(t int32) error {
	data, objects, err := r.task(t)
	if err != nil {
		return &spec.TaskError{Key: r.p.Tasks[t].Key, Err: err}
	}
	length := int32(len(data))
	if len(data) > r.tc.Client.InlineMax() { // it becomes an object of its own, the task's first
		i, err := r.put(r.bytes(data))
		if err != nil {
			return err
		}
		length, data, objects = -1, nil, append([]int32{i}, objects...)
	}
	x := &r.p.Tasks[t]
	r.Keys = append(r.Keys, x.Key.String())
	r.Length = appendNumber(r.Length, length)
	r.Deps, r.DepCount = appendList(r.Deps, r.DepCount, x.Deps)
	r.Outer, r.OutCount = appendList(r.Outer, r.OutCount, objects)
	r.Order = appendNumber(r.Order, r.p.Graph.Rank(t))
	r.NoteOf = appendNumber(r.NoteOf, r.note(x.Notes))
	r.blob = append(r.blob, data...)
	if r.count++; len(r.blob) >= r.most {
		return r.flush()
	}
	return nil
}

// note gives the index of a task's note.
func (r *request) note(a *spec.Annotations) int32 {
	if a == nil {
		return -1
	}
	i, ok := r.notes[a]
	if !ok {
		i = int32(len(r.Notes))
		r.notes[a] = i
		r.Notes = append(r.Notes, *noteOf(a))
	}
	return i
}

// flush makes an object of the collected payloads.
func (r *request) flush() error {
	if r.count == 0 {
		return nil
	}
	i, err := r.put(r.bytes(r.blob))
	r.blobs = append(r.blobs, i)
	r.Blobs = appendNumber(r.Blobs, r.count)
	r.blob, r.count = nil, 0
	return err
}

// references are the objects shipped with the request: payloads, then all objects in the order of the tasks'
// numbers.
func (r *request) references() wire.Arg {
	refs := make([]ids.ObjectID, 0, len(r.blobs)+len(r.objects))
	for _, i := range r.blobs {
		refs = append(refs, r.objects[i].Passed())
	}
	for _, h := range r.objects {
		refs = append(refs, h.Passed())
	}
	return wire.Arg{Value: wire.Value{Meta: r.bytesMeta(), Refs: refs}}
}

func appendNumber(b []byte, n int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }

// appendList appends a list and its length.
func appendList(to, counts []byte, list []int32) (all, lengths []byte) {
	for _, n := range list {
		to = appendNumber(to, n)
	}
	return to, appendNumber(counts, int32(len(list)))
}
