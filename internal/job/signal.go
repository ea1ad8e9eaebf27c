package job

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Notify returns the signals that Job.Signals should have: all that a command may handle, except
// those that are ignored, as after nohup(1). SIGTSTP and SIGCONT are not among them: Ctrl-Z stops
// this process and the command alike, and the shell continues both.
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

// ends reports whether a signal ends a program that does not know it.
func ends(sig os.Signal) bool { return sig != syscall.SIGWINCH }

// pass passes a signal on. Those that a key of the terminal, or a change of its size, sends to all
// of a foreground job have reached the command already.
func (c *child) pass(sig os.Signal) {
	keys := []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH}
	if !c.group && slices.Contains(keys, sig) && foreground() {
		return
	}
	c.signal(sig.(syscall.Signal))
}

// foreground reports whether this process is of the job that has the terminal.
func foreground() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// DieOf ends this process by a signal, as the command was: a shell, cron and timeout(1) see how it
// ended. It returns if that is not possible: exit with 128 + the signal then.
func DieOf(sig syscall.Signal) {
	if slices.Contains([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP,
		syscall.SIGKILL}, sig) { // the others are Go's
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // another thread may be the one that it reaches
	}
}
