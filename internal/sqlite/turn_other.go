//go:build !linux && !darwin

package sqlite

import (
	"errors"
	"os"
)

// lock returns an error: turns are not supported here.
func lock(*os.File, bool) error { return errors.ErrUnsupported }

func letNext(*os.File) {}
