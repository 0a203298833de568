// Package modules packs the modules of a Python driver into one zip, and unpacks it where they are not.
//
// # What goes along
//
// Of each directory that the driver imports its own modules from: every file *.py and *.so at a place from which it can be imported, and in packages (directories with
// __init__.py) all files, since packages read data of their own. Left out are hidden files, __pycache__, virtual environments, files of other users, and what
// cannot be read. Links are followed. The same files give the same bytes, so that they are sent once.
//
// # Bounds
//
// MaxBytes of files and MaxEntries of them. Data beside the modules is passed over by its name and does not count, up to MaxNames: a driver whose script lies in a home directory is told so, instead of having all of it sent.
//
// # What blocks
//
// Only the disk.
//
// # Errors
//
// errs.ErrRuntimeSetup: more than the bounds; it names the directory. errs.ErrProtocol: no zip of ours. Other system errors as they are.
package modules
