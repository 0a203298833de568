package spill

// FileKey names a file of any target.
type FileKey struct {
	Target uint16
	File   uint64
}

// Key is the file that a location lies in.
func (l Location) Key() FileKey { return FileKey{l.Target, l.File} }

// fileRefs has the reasons to keep one file.
type fileRefs struct {
	objects map[uint64]int // by offset; empty objects may share one
	count   int
	holds   int // reads under way
	bytes   uint64
}

// Refs counts for each fused file the objects that the store still has there. Recover rebuilds it from the store's
// index.
type Refs struct {
	files map[FileKey]*fileRefs
	bytes uint64 // of live objects
	count int
}

// NewRefs makes an empty one.
func NewRefs() *Refs { return &Refs{files: make(map[FileKey]*fileRefs)} }

func (r *Refs) file(k FileKey) *fileRefs {
	f := r.files[k]
	if f == nil {
		f = &fileRefs{objects: make(map[uint64]int)}
		r.files[k] = f
	}
	return f
}

// Add counts an object.
func (r *Refs) Add(l Location) {
	f := r.file(l.Key())
	f.objects[l.Off]++
	f.count++
	f.bytes += l.Size
	r.bytes += l.Size
	r.count++
}

// Drop removes an object. It tells whether the file must be deleted now, and whether the object was counted at
// all.
func (r *Refs) Drop(l Location) (last, known bool) {
	f := r.files[l.Key()]
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
	return r.settle(l.Key(), f), true
}

// Hold keeps the file while an object of it is read. A file without objects is not held:
// nothing deletes it.
func (r *Refs) Hold(k FileKey) bool {
	f := r.files[k]
	if f != nil {
		f.holds++
	}
	return f != nil
}

// Release ends a hold; it tells whether the file must be deleted now.
func (r *Refs) Release(k FileKey) bool {
	f := r.files[k]
	if f == nil || f.holds == 0 {
		return false // Refs was rebuilt since
	}
	f.holds--
	return r.settle(k, f)
}

// Has tells whether the file holds a live object.
func (r *Refs) Has(k FileKey) bool { f := r.files[k]; return f != nil && f.count > 0 }

func (r *Refs) settle(k FileKey, f *fileRefs) bool {
	if f.count > 0 || f.holds > 0 {
		return false
	}
	delete(r.files, k)
	return true
}

// Count is how many files hold live objects or are read, how many live objects there are, and their bytes.
func (r *Refs) Count() (files, objects int, bytes uint64) { return len(r.files), r.count, r.bytes }
