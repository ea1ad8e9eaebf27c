package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// Errors that a person can act on. Each text ends with what to do; Open and DB.Explain add the path
// before it.
var (
	// ErrNotDatabase: the file is no SQLite database, or belongs to another program or purpose.
	ErrNotDatabase = errors.New("not a file of this kind; name another file, or move this one away")
	// ErrReadOnly: the file or its directory cannot be written.
	ErrReadOnly = errors.New("cannot be written; check the permissions of the file and directory")
	// ErrNewer: the file has migrations that this program lacks.
	ErrNewer = errors.New("written by a newer version; use that version, or name another file")
	// ErrDamaged: the file is empty, or a broken or truncated database.
	ErrDamaged = errors.New("damaged; restore a copy, or move it away to start with an empty one")
	// ErrFull: the disk is full; the transaction was rolled back.
	ErrFull = errors.New("no space left on the disk; free some and try again")
	// ErrGone: the file was moved or replaced after it was opened, so writes to it are lost.
	ErrGone = errors.New("moved, deleted or replaced; put it back, or restart the program")
	// ErrBusy: another process held the write lock for longer than the busy timeout.
	ErrBusy = errors.New("another process is writing; try again when it is done")
)

// explain adds the path, once, to an error of SQLite or of this package.
func explain(path string, err error) error {
	var said *fileError
	if err == nil || errors.As(err, &said) {
		return err
	}
	kind, ours := classify(err)
	if !ours {
		return err
	}
	return &fileError{path: path, cause: err, kind: kind}
}

// classify returns the sentinel for err, or nil; ours reports whether SQLite or this package
// created the error.
func classify(err error) (kind error, ours bool) {
	for _, sentinel := range []error{
		ErrNotDatabase, ErrReadOnly, ErrNewer, ErrDamaged, ErrFull, ErrGone, ErrBusy,
	} {
		if errors.Is(err, sentinel) {
			return sentinel, true
		}
	}
	var coded *driver.Error
	if errors.As(err, &coded) {
		return kindOfCode(coded.Code()), true
	}
	return nil, false
}

// explainSystem is explain for an error of the operating system.
func explainSystem(path string, err error) error {
	var kind error
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		kind = ErrReadOnly
	case errors.Is(err, syscall.ENOSPC):
		kind = ErrFull
	}
	if about, ok := err.(*fs.PathError); ok && about.Path == path {
		err = about.Err
	}
	return &fileError{path: path, cause: err, kind: kind}
}

func kindOfCode(code int) error {
	if code == codes.SQLITE_IOERR_SHMSIZE { // the index of the log could not grow
		return ErrFull
	}
	switch code & 0xff {
	case codes.SQLITE_NOTADB:
		return ErrNotDatabase
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
		return ErrReadOnly
	case codes.SQLITE_CORRUPT:
		return ErrDamaged
	case codes.SQLITE_FULL:
		return ErrFull
	case codes.SQLITE_BUSY, codes.SQLITE_PROTOCOL:
		return ErrBusy
	}
	return nil
}

type fileError struct {
	path        string
	cause, kind error
}

func (e *fileError) Error() string {
	if e.kind == nil || errors.Is(e.cause, e.kind) { // the cause already contains it
		return fmt.Sprintf("%s: %v", e.path, e.cause)
	}
	return fmt.Sprintf("%s: %v: %v", e.path, e.cause, e.kind)
}

func (e *fileError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.kind}
}

// FolderAdvice returns the command that creates the folder of a file, or "" if err is not that this
// user may not create it.
func FolderAdvice(err error) string {
	e, ok := errors.AsType[*fs.PathError](err)
	if !ok || e.Op != "mkdir" || !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return `sudo install -d -o "$USER" -m 700 ` + e.Path
}

// isKind reports whether err comes from SQLite or this package and has that kind.
func isKind(err, kind error) bool {
	got, _ := classify(err)
	return got == kind
}
