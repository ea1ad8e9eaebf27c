package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// create creates an empty file at path unless one exists. It does not open an existing file,
// because closing it would drop the locks of this process's other connections.
func create(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return explain(path, fmt.Errorf("not a regular file: %w", ErrNotDatabase))
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return explainSystem(path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return explainSystem(path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	if err != nil {
		return explainSystem(path, err)
	}
	defer file.Close()
	if !shared(filepath.Dir(path)) {
		return nil
	}
	if err := file.Chmod(0o660); err != nil {
		return explainSystem(path, err)
	}
	return nil
}

// shared reports whether dir is shared by a group: setgid and writable by the group. SQLite gives
// the log and its index the mode of the file.
func shared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&fs.ModeSetgid != 0 && info.Mode().Perm()&0o020 != 0
}
