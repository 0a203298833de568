package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/blobdir"
	"mobula/internal/node/blobs"
	"mobula/internal/node/modules"
	"mobula/internal/safefs"
	"mobula/raylet/internode"
	"mobula/raylet/pool/proc"
	"mobula/wire"
)

// find tells another node which blob a job of this node has for something.
func (b *blobShell) find(node ids.Home, m *internode.FindBlob) {
	said := &internode.BlobFound{Job: m.Job, What: m.What, Hash: m.Hash}
	f, hash, err := b.source(m.Job, m.What, m.Hash)
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			said.Hash, said.Size = hash, uint64(info.Size())
		}
		_ = f.Close() // only ever read
	}
	said.Err = errs.From(err)
	b.links.say(node, said)
}

// send sends another node a chunk of a blob.
func (b *blobShell) send(node ids.Home, m *internode.PullBlob) {
	said := &internode.BlobChunk{Job: m.Job, What: m.What, Hash: m.Hash, Offset: m.Offset}
	var err error
	said.Data, err = b.chunk(m)
	said.Err = errs.From(err)
	b.links.say(node, said)
}

func (b *blobShell) chunk(m *internode.PullBlob) ([]byte, error) {
	if m.Size > blobs.ChunkSize {
		return nil, errs.New(errs.CodeProtocol, "%d bytes of a blob are asked for at once, at most %d are sent", m.Size, blobs.ChunkSize)
	}
	f, hash, err := b.source(m.Job, m.What, m.Hash)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only ever read
	if hash != m.Hash {
		return nil, errs.New(errs.CodeNotFound, "job %v had another file when its hash was told", m.Job)
	}
	data := make([]byte, m.Size)
	n, err := f.ReadAt(data, int64(m.Offset))
	if errors.Is(err, io.EOF) {
		err = nil // who asked sees that it is short
	}
	return data[:n], err
}

// source opens what a job of this node has for something, and gives its hash. The file is the caller's.
func (b *blobShell) source(job ids.JobID, what internode.BlobKind, hash blobs.Hash) (*os.File, blobs.Hash, error) {
	switch what {
	case internode.BlobExecutable:
		f, err := b.goProgram(job)
		if err != nil {
			return nil, hash, err
		}
		if hash, err = b.sum(f); err != nil {
			_ = f.Close() // it cannot be read
		}
		return f, hash, err
	case internode.BlobModules:
		return b.pack(job)
	case internode.BlobFunction:
		f, err := safefs.OpenFile(blobdir.Path(b.functions(job), hash), os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			err = errs.New(errs.CodeUnknownFunction, "function %.12v of job %v is not on node %s", hash, job, b.cfg.Name)
		}
		return f, hash, err
	}
	return nil, hash, errs.New(errs.CodeProtocol, "a blob of kind %d", what)
}

// goProgram opens the executable of a job's Go workers.
func (b *blobShell) goProgram(job ids.JobID) (*os.File, error) {
	if p := b.programs.of(job); p.said != nil && p.of(wire.LangGo) == nil {
		return nil, errs.New(errs.CodeNotFound, "job %v has no Go program", job)
	}
	p, err := b.programs.executable(job, wire.LangGo)
	switch {
	case err != nil:
		return nil, err
	case p.File != nil:
		return p.File, nil
	case p.Exe == "":
		return os.Open(b.cfg.Executable)
	}
	path, err := proc.LookPath(p.Exe, p.Env)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// fileIdentity tells a file from others, and from what it was before it was written again.
type fileIdentity struct {
	dev, ino    uint64
	size, mtime int64
}

// maxSums bounds the hashes of executables that are remembered.
const maxSums = 256

// sum is the hash of an executable, which is read once.
func (b *blobShell) sum(f *os.File) (blobs.Hash, error) {
	info, err := f.Stat()
	if err != nil {
		return blobs.Hash{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	id := fileIdentity{st.Dev, st.Ino, st.Size, info.ModTime().UnixNano()}
	b.mu.Lock()
	hash, known := b.sums[id]
	b.mu.Unlock()
	if known {
		return hash, nil
	}
	sum, err := blobdir.Sum(f)
	if err != nil {
		return blobs.Hash{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sums) == maxSums {
		clear(b.sums)
	}
	b.sums[id] = sum
	return sum, nil
}

// packed is the zip of a driver's own modules, which is made when the first other node asks for it.
type packed struct {
	mu   sync.Mutex
	path string // guarded by mu; empty: it is not made yet
	hash blobs.Hash
}

// pack opens the zip of a driver's own modules.
func (b *blobShell) pack(job ids.JobID) (*os.File, blobs.Hash, error) {
	b.mu.Lock()
	p := b.packed[job]
	if p == nil {
		p = &packed{}
		b.packed[job] = p
	}
	b.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path == "" {
		if err := b.makeZip(job, p); err != nil {
			return nil, blobs.Hash{}, err
		}
	}
	f, err := safefs.OpenFile(p.path, os.O_RDONLY, 0)
	return f, p.hash, err
}

// makeZip packs the modules of a job's Python driver. p.mu is held.
func (b *blobShell) makeZip(job ids.JobID, p *packed) error {
	said := b.programs.of(job).of(wire.LangPython)
	if said == nil {
		return errs.New(errs.CodeNotFound, "job %v has no Python program", job)
	}
	dir := b.files.Shared(job)
	if err := safefs.MakeDir(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, "modules.zip")
	f, err := safefs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = modules.Pack(f, said.Roots)
	if err == nil {
		p.hash, err = blobdir.Sum(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("the driver's own modules: %w", err)
	}
	p.path = path
	return nil
}
