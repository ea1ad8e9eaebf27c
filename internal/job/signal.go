package job

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Notify returns a channel for Job.Signals. It receives all signals that a command may handle,
// except ignored ones, as after nohup(1). SIGTSTP and SIGCONT are not included: Ctrl-Z stops this
// process and the command alike, and the shell continues both.
func Notify() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP,
		syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// pass passes a signal to the command, unless the terminal has already sent it to the whole
// foreground job, for a key or a change of its size.
func (c *child) pass(sig os.Signal) {
	keys := []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH}
	if !c.group && slices.Contains(keys, sig) && foreground() {
		return
	}
	c.signal(sig.(syscall.Signal))
}

// foreground reports whether this process belongs to the terminal's foreground job.
func foreground() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// DieOf ends this process by the signal that ended the command, so that a shell, cron and
// timeout(1) see it. If DieOf returns, the caller should exit with 128 + the signal.
func DieOf(sig syscall.Signal) {
	if slices.Contains([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP,
		syscall.SIGKILL}, sig) { // Go handles the others
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // the signal may reach another thread
	}
}
