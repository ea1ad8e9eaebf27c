package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// create makes an empty file at path, readable by its owner alone, where there is none. A file that
// exists is not opened here: closing it again would drop the locks that another connection of this
// process holds on it.
func create(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return explain(path, fmt.Errorf("no regular file: %w", ErrNotDatabase))
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
	return file.Close()
}
