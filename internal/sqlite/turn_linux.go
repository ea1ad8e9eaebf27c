package sqlite

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The bytes that are locked, beyond what a log can have.
const (
	roomByte = 1<<62 + iota // shared, by all who wait
	nextByte                // by who comes next: the others wait for this one
	turnByte                // by whose turn it is
)

// lock locks f for a turn, until f is closed; errTaken if it would have to wait and is not to.
func lock(f *os.File, wait bool) error {
	if !wait && taken(f, roomByte) {
		return errTaken
	}
	if wait {
		queueUp(f)
	}
	if err := lockByte(f, unix.F_WRLCK, nextByte, wait); err != nil {
		return err
	}
	return lockByte(f, unix.F_WRLCK, turnByte, wait)
}

// queueUp goes behind those who wait. The kernel wakes the first of them when it can come next, and
// does not keep the place for it; on a busy machine that takes milliseconds, in which who has just
// had a turn would be first again and again.
func queueUp(f *os.File) {
	for range 10 {
		if taken(f, nextByte) || !taken(f, roomByte) {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}
	_ = lockByte(f, unix.F_RDLCK, roomByte, false)
}

// letNext lets somebody else come next.
func letNext(f *os.File) {
	_ = lockByte(f, unix.F_UNLCK, nextByte, false)
	_ = lockByte(f, unix.F_UNLCK, roomByte, false)
}

func lockByte(f *os.File, how int16, at int64, wait bool) error {
	command := unix.F_OFD_SETLK
	if wait {
		command = unix.F_OFD_SETLKW
	}
	byte := unix.Flock_t{Type: how, Whence: io.SeekStart, Start: at, Len: 1}
	for {
		switch err := unix.FcntlFlock(f.Fd(), command, &byte); err {
		case unix.EINTR:
		case unix.EAGAIN, unix.EACCES:
			return errTaken
		default:
			return err
		}
	}
}

// taken reports whether others have locked the byte.
func taken(f *os.File, at int64) bool {
	byte := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &byte)
	return err == nil && byte.Type != unix.F_UNLCK
}
