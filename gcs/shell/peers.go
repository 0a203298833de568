package shell

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mobula/internal/safefs"
)

// A server of a cluster runs clustered from its first start, alone too: a server that changes from standalone to clustered does not find its streams
// any more. Alone NATS would wait for a second server, since the group that knows all streams begins with two members at least. So before its first
// start a server gets the file in which NATS keeps who is of that group: the first server is alone in it, and any other one waits
// until the leader has taken it in. Two servers that join at the same time can therefore not elect one of them.

// peersFile is where NATS keeps the members of that group.
const peersFile = "jetstream/$SYS/_js_/_meta_/peers.idx"

// unreachable is a size of the group of which nobody gets a majority.
const unreachable = 1 << 20

// seedPeers writes the file for the first start of a server with that name in the group.
func seedPeers(dir, name string, first bool) error {
	path := filepath.Join(dir, filepath.FromSlash(peersFile))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	size := uint32(unreachable)
	if first {
		size = 1
	}
	row := binary.LittleEndian.AppendUint32(nil, size)
	row = binary.LittleEndian.AppendUint32(row, 1) // members that are known
	row = append(row, name...)
	row = binary.LittleEndian.AppendUint16(row, 0) // it does not extend another domain
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return safefs.Replace(path, row)
}
