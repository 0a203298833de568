package objectstore

import (
	"mobula/internal/ids"
	"mobula/wire"
)

func (cs *clients) toClient(id ids.ClientID, m wire.Msg) {
	if _, ok := cs.byID[id]; ok {
		cs.emit(ToClient{Client: id, Msg: m})
	}
}

// announce tells a client of a fallback file before each use: it may have unmapped it
// since the last one.
func (cs *clients) announce(id ids.ClientID, file uint32, size uint64, path string) {
	if _, ok := cs.byID[id]; ok && file != 0 {
		cs.emit(ToClient{Client: id, Msg: &wire.MapFile{File: file, Size: size, Path: path}, File: file})
	}
}

// dropFile ends a fallback file of which nothing is pinned. Any client may have been told of it, also by a core before this one.
func (cs *clients) dropFile(file uint32, path string) {
	for _, id := range cs.sortedClients() {
		cs.toClient(id, &wire.UnmapFile{File: file})
	}
	cs.emit(DropFile{file, path})
}

func (cs *clients) sortedClients() []ids.ClientID { return sortedKeys(cs.byID) }

func (cs *clients) clientsOf(job ids.JobID) (n int) {
	for id := range cs.byID {
		if cs.jobOf[id] == job {
			n++
		}
	}
	return n
}

// foreign tells whether a client reads an object in a copy only.
func (cs *clients) foreign(client ids.ClientID, o *object) bool { return cs.jobOf[client] != o.job }
