//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

// lockFile returns an error: turns are not supported here.
func lockFile(*os.File, bool) error { return errors.ErrUnsupported }
