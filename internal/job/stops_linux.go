package job

import (
	"time"

	"golang.org/x/sys/unix"
)

const stoppedCode = 5 // CLD_STOPPED

// followStops stops this process when the command is stopped, so that a shell sees the job stop.
func (c *child) followStops() {
	if c.group {
		return
	}
	for {
		stopped, ended := c.state(0)
		switch {
		case ended:
			return
		case !stopped: // interrupted
			continue
		}
		// A key of the terminal stops this process, too; the shell has continued both by now.
		time.Sleep(20 * time.Millisecond)
		if stopped, ended = c.state(unix.WNOHANG); stopped {
			stopSelf()
		}
		for stopped && !ended { // continued alone
			time.Sleep(50 * time.Millisecond)
			stopped, ended = c.state(unix.WNOHANG)
		}
	}
}

// state waits until the command is stopped or has ended, and leaves both to be asked for again: its
// end is for os/exec.
func (c *child) state(options int) (stopped, ended bool) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info,
		unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|options, nil)
	if err != nil {
		return false, err != unix.EINTR
	}
	return info.Code == stoppedCode, info.Code != 0 && info.Code != stoppedCode
}
