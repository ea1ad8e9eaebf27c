//go:build !linux && !darwin

package sqlite

import (
	"errors"
	"os"
)

// lock locks nothing: there are no turns here.
func lock(*os.File, bool) error { return errors.ErrUnsupported }

func letNext(*os.File) {}
