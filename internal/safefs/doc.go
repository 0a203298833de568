// Package safefs makes and opens what the project has in places that other users of the machine share: /tmp/mobula-UID and all
// that lies below, the segment and its index under /dev/shm, directories of spill roots, lock and log files.
//
// # What it holds
//
// In a shared place anybody can be there first: with a link to a file of ours that an open would truncate, with a FIFO on which an
// open would wait for ever, with a directory of his own in which our files would be his. So nothing is opened by name alone:
//
//   - The last component is never followed as a link, and no open waits (O_NOFOLLOW, O_NONBLOCK).
//   - What was opened is looked at before it is used (fstat): a regular file of this user or of root, which others cannot write and which
//     has one name; a directory likewise. It is truncated only then.
//   - MakeDir and CheckDir look at each component of a path as well: a link on the way is this user's or root's, none
//     is in a directory that everybody may write to (/tmp, a shared spill root), and from such a one on each directory is this user's
//     or root's and nobody else's to change. What lies below a directory that was checked so cannot be replaced by others.
//
// A user who says --dir /a/b vouches for /a where that is no place for everybody: group members who may rename a/b are his to choose.
//
// # Errors
//
// errs.ErrPermission names the path, what was found there and what to do. What the system says otherwise comes as it is, so that
// os.ErrNotExist and os.ErrExist are told as usual.
//
// # What blocks
//
// Nothing but the disk.
package safefs
