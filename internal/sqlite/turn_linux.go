package sqlite

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Bytes to lock, beyond the end of any log.
const (
	roomByte = 1<<62 + iota // shared by all waiting processes
	nextByte                // the next process; the others wait for this byte
	turnByte                // the process whose turn it is
)

// lock locks f for a turn, until f is closed. Without wait it returns errTaken if it would have
// to.
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

// queueUp waits behind the waiting processes. The kernel wakes the first of them when nextByte is
// free but does not reserve it. On a busy machine waking takes milliseconds, in which the last
// holder would be first again and again.
func queueUp(f *os.File) {
	for range 10 {
		if taken(f, nextByte) || !taken(f, roomByte) {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}
	_ = lockByte(f, unix.F_RDLCK, roomByte, false)
}

// letNext lets another process be next.
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

// taken reports whether another process has locked the byte.
func taken(f *os.File, at int64) bool {
	byte := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &byte)
	return err == nil && byte.Type != unix.F_UNLCK
}
