package objectstore

import (
	"cmp"
	"slices"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
)

// A spill file goes with its last object. Until then what the others took stays on the disk: garbage. A file of which little lives is worth writing anew:
// see spilling_compact.go.

// spillFile is a file as the store knows it. Bytes are those that objects take in a file (format.Footprint).
type spillFile struct {
	key    spill.FileKey
	size   uint64    // when all of its objects lived
	live   uint64    // of the objects that it has now
	objs   []*object // those
	broken bool      // one of them cannot be read: the file stays as it is
}

// spillFiles is where the objects lie that have a copy in spill storage.
type spillFiles struct {
	byKey      map[spill.FileKey]*spillFile
	size, live uint64 // of all
	sparse     uint64 // garbage of those that are worth writing anew
}

// liveShare is the part of a file, as 1 of so many, below which it is written anew: for each byte that is written three are freed.
const liveShare = 4

func (f *spillFile) garbage() uint64 { return f.size - f.live }

// worth is how many bytes go if a file is written anew: 0 if that is not worth it.
func (f *spillFile) worth() uint64 {
	if f.broken || f.live >= f.size/liveShare {
		return 0
	}
	return f.garbage()
}

func (fs *spillFiles) garbage() uint64 { return fs.size - fs.live }

// change changes a file, and keeps the sums.
func (fs *spillFiles) change(f *spillFile, how func()) {
	fs.size, fs.live, fs.sparse = fs.size-f.size, fs.live-f.live, fs.sparse-f.worth()
	how()
	fs.size, fs.live, fs.sparse = fs.size+f.size, fs.live+f.live, fs.sparse+f.worth()
}

// add notes that an object lies at a place. Written says that it was put there just now; else the file's size is to be told.
func (fs *spillFiles) add(o *object, l spill.Location, written bool) {
	o.spilled, o.loc = true, l
	f := fs.byKey[l.Key()]
	if f == nil {
		f = &spillFile{key: l.Key()}
		fs.byKey[f.key] = f
	}
	fs.change(f, func() {
		o.inFile = len(f.objs)
		f.objs = append(f.objs, o)
		n := format.Footprint(l.Size)
		f.live += n
		if written {
			f.size += n
		}
		f.size = max(f.size, f.live)
	})
}

// drop notes that an object has no copy in its file any more.
func (fs *spillFiles) drop(o *object) {
	f := fs.byKey[o.loc.Key()]
	o.spilled = false
	fs.change(f, func() {
		last := len(f.objs) - 1
		f.objs[o.inFile] = f.objs[last]
		f.objs[o.inFile].inFile = o.inFile
		f.objs[last] = nil
		f.objs = f.objs[:last]
		f.live -= format.Footprint(o.loc.Size)
		if len(f.objs) == 0 {
			f.size = 0
		}
	})
	if len(f.objs) == 0 {
		delete(fs.byKey, f.key)
	}
}

// told notes how large the files are that were there before this core.
func (fs *spillFiles) told(sizes map[spill.FileKey]uint64) {
	for k, n := range sizes {
		if f := fs.byKey[k]; f != nil && n > format.Overhead {
			fs.change(f, func() { f.size = max(f.size, n-format.Overhead) })
		}
	}
}

// sparsest lists files that are worth writing anew, those with the fewest bytes first, up to so many bytes and objects, but one at least.
func (fs *spillFiles) sparsest(bytes uint64, objs int) []*spillFile {
	var all []*spillFile
	for _, f := range fs.byKey {
		if f.worth() > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *spillFile) int {
		return cmp.Or(cmp.Compare(a.live, b.live), cmp.Compare(a.key.Target, b.key.Target), cmp.Compare(a.key.File, b.key.File))
	})
	for i, f := range all {
		if i > 0 && (f.live > bytes || len(f.objs) > objs) {
			return all[:i]
		}
		bytes, objs = bytes-min(bytes, f.live), objs-min(objs, len(f.objs))
	}
	return all
}
