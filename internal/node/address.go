package node

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultAddress is the socket of the node that `mobula start` starts for this user.
func DefaultAddress() string { return filepath.Join(defaultDir(), SocketName) }

func defaultDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("mobula-%d", os.Getuid()), "default")
}

// Resolve gives the socket that an address names: a socket's path, or the directory of a node. Without an address it is the one in
// MOBULA_ADDRESS, else the socket in MOBULA_DIR, else DefaultAddress.
func Resolve(address string, getenv func(string) string) string {
	if address == "" {
		address = getenv("MOBULA_ADDRESS")
	}
	if address == "" {
		if dir := getenv("MOBULA_DIR"); dir != "" {
			return filepath.Join(dir, SocketName)
		}
		return DefaultAddress()
	}
	if st, err := os.Stat(address); err == nil && st.IsDir() {
		return filepath.Join(address, SocketName)
	}
	return address
}
