//go:build !linux && !darwin

package sqlite

import (
	"context"
	"time"
)

// turn is everybody's where folders cannot be locked.
func turn(context.Context, string, time.Duration) (done func(), err error) {
	return func() {}, nil
}
