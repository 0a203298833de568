package membership

import (
	"fmt"
	"strconv"
	"strings"

	"mobula/internal/ids"
	"mobula/remote"
)

// Name is what the gossip calls a life: each has a name of its own, so that what is gossiped of one is never taken for another.
func Name(l remote.Life) string { return fmt.Sprintf("%v.%d", l.Home, l.Epoch) }

// ParseName reads a Name.
func ParseName(name string) (remote.Life, error) {
	home, epoch, ok := strings.Cut(name, ".")
	h, errHome := strconv.ParseUint(home, 10, ids.HomeBits)
	e, errEpoch := strconv.ParseUint(epoch, 10, 64)
	l := remote.Life{Home: ids.Home(h), Epoch: e}
	if !ok || errHome != nil || errEpoch != nil || e == 0 || Name(l) != name {
		return remote.Life{}, fmt.Errorf("%w: %.40q is no name of a life", ErrMeta, name)
	}
	return l, nil
}
