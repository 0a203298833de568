package trust

import (
	"strconv"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// scheme begins the URI in each certificate of a cluster.
const scheme = "mobula://"

// Name is what a node's certificate says of it.
type Name struct {
	Cluster string // the cluster's id
	Role    Role
	Home    ids.Home
	Epoch   uint64 // the node's life in which the certificate was issued; it serves later lives too
}

// String is the name as a URI: mobula://CLUSTER/ROLE/HOME/EPOCH. A name has one text only.
func (n Name) String() string {
	return scheme + n.Cluster + "/" + string(n.Role) + "/" + n.Home.String() + "/" + strconv.FormatUint(n.Epoch, 10)
}

// ParseName reads String's text.
func ParseName(s string) (Name, error) {
	bad := func() (Name, error) {
		return Name{}, errs.New(errs.CodeInvalid, "%q does not name a node of a cluster", s)
	}
	rest, ok := strings.CutPrefix(s, scheme)
	part := strings.Split(rest, "/")
	if !ok || len(part) != 4 {
		return bad()
	}
	home, err := strconv.ParseUint(part[2], 10, ids.HomeBits)
	if err != nil {
		return bad()
	}
	epoch, err := strconv.ParseUint(part[3], 10, 64)
	if err != nil {
		return bad()
	}
	n := Name{Cluster: part[0], Role: Role(part[1]), Home: ids.Home(home), Epoch: epoch}
	if !IsCluster(n.Cluster) || !n.Role.Known() || n.String() != s {
		return bad()
	}
	return n, nil
}

// IsCluster tells whether a text can be a cluster's id: it is the host of a URI, and the part of a key.
func IsCluster(id string) bool {
	return id != "" && len(id) <= 63 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
