// Package safefs makes and opens the project's files in places that other users of the machine share: /tmp/mobula-UID and
// everything below it, the segment and its index under /dev/shm, directories of spill roots, lock and log files.
//
// # What it guarantees
//
// In a shared place another user can be first: with a link to a file of ours that an open would truncate, with a FIFO on which an
// open would wait for ever, or with a directory of their own that would give them our files. So nothing is opened by name alone:
//
//   - The last component is never followed as a link, and no open waits (O_NOFOLLOW, O_NONBLOCK).
//   - An opened file is checked before it is used (fstat): it must be a regular file of this user or of root, which others cannot write
//     and which has one name. A directory is checked likewise. Only then is a file truncated.
//   - MakeDir and CheckDir also check each component of a path: a link on the way must be this user's or root's, and not in a
//     directory that everybody may write to (/tmp, a shared spill root). Below such a directory each directory must be this user's or
//     root's, and nobody else may be able to change it. Others cannot replace anything below a directory that was checked in this
//     way.
//
// A user who gives --dir /a/b vouches for /a, unless everybody may write to it: it is the user's choice which group members may
// rename /a/b.
//
// # Errors
//
// errs.ErrPermission names the path, what was found there and what to do. Other system errors are passed on unchanged, so
// os.ErrNotExist and os.ErrExist match as usual.
//
// # What blocks
//
// Only the disk.
package safefs
