package objectstore

import "mobula/internal/ids"

// Info is one object as List gives it; of one that the store does not have only the id is set.
func (c *Core) Info(id ids.ObjectID) Info { return c.info(id) }
