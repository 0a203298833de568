package spill

// fileKey names a file of any target.
type fileKey struct {
	target uint16
	file   uint64
}

// fileRefs is what one file is kept for.
type fileRefs struct {
	objects map[uint64]int // by offset; empty objects may share one
	count   int
	holds   int // reads under way
	bytes   uint64
}

// refs counts, for each fused file, the objects that the store still has there. It holds facts
// only: what was written, what was given up; Recover makes it anew from the store's index.
type refs struct {
	files map[fileKey]*fileRefs
	bytes uint64 // of live objects
	count int
}

func newRefs() *refs { return &refs{files: make(map[fileKey]*fileRefs)} }

func key(l Location) fileKey { return fileKey{l.Target, l.File} }

func (r *refs) file(k fileKey) *fileRefs {
	f := r.files[k]
	if f == nil {
		f = &fileRefs{objects: make(map[uint64]int)}
		r.files[k] = f
	}
	return f
}

// add counts an object.
func (r *refs) add(l Location) {
	f := r.file(key(l))
	f.objects[l.Off]++
	f.count++
	f.bytes += l.Size
	r.bytes += l.Size
	r.count++
}

// drop gives an object up. It tells whether the file has to be deleted now, and whether the object
// was counted at all.
func (r *refs) drop(l Location) (last, known bool) {
	f := r.files[key(l)]
	if f == nil || f.objects[l.Off] == 0 {
		return false, false
	}
	if f.objects[l.Off]--; f.objects[l.Off] == 0 {
		delete(f.objects, l.Off)
	}
	f.count--
	f.bytes -= l.Size
	r.bytes -= l.Size
	r.count--
	return r.settle(key(l), f), true
}

// hold keeps the file while an object of it is read. A file without objects is not held:
// nothing deletes it.
func (r *refs) hold(k fileKey) bool {
	f := r.files[k]
	if f != nil {
		f.holds++
	}
	return f != nil
}

// release ends a hold; it tells whether the file has to be deleted now.
func (r *refs) release(k fileKey) bool {
	f := r.files[k]
	if f == nil || f.holds == 0 {
		return false // counted anew since
	}
	f.holds--
	return r.settle(k, f)
}

// has tells whether the file holds a live object.
func (r *refs) has(k fileKey) bool { f := r.files[k]; return f != nil && f.count > 0 }

func (r *refs) settle(k fileKey, f *fileRefs) bool {
	if f.count > 0 || f.holds > 0 {
		return false
	}
	delete(r.files, k)
	return true
}
