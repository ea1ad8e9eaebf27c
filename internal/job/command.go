package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Command is what a job runs.
type Command struct {
	Args []string // the program, by path or by name in PATH, and its arguments
	Dir  string   // "" for the current folder
	Env  []string // NAME=VALUE; the complete environment, including PATH
	// Files are passed to the command. Other readers and writers are copied. If a descendant of the
	// command keeps them open, copying ends after copyTime.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	User           *syscall.Credential // nil for the current user
	// Group starts the command in a new process group, which is ended as a whole. Otherwise the
	// command stays in this process's group, as terminals and pipelines expect.
	Group bool
}

// copyTime is how long descendants of a command may keep its output open.
const copyTime = 2 * time.Second

const (
	cannotRun = 126
	notFound  = 127
)

type child struct {
	cmd   *exec.Cmd
	group bool
	ended chan error // of cmd.Wait
}

// start finds the command and starts it with additional variables and files. Errors: StartError.
func (c Command) start(env []string, extra []*os.File) (*child, error) {
	path, err := c.find()
	if err != nil {
		return nil, err
	}
	cmd := c.prepared(path, c.Args, env, extra)
	err = cmd.Start()
	if errors.Is(err, syscall.ENOEXEC) { // no #! line: the shell runs it, as execvp(3) says
		cmd = c.prepared("/bin/sh", append([]string{"sh", path}, c.Args[1:]...), env, extra)
		err = cmd.Start()
	}
	if err != nil {
		return nil, &StartError{cannotRun, fmt.Errorf("cannot run %s: %w", c.Args[0], cause(err))}
	}
	return &child{cmd: cmd, group: c.Group, ended: make(chan error, 1)}, nil
}

func (c Command) prepared(path string, args, env []string, extra []*os.File) *exec.Cmd {
	return &exec.Cmd{
		Path: path, Args: args, Dir: c.Dir, Env: append(append([]string{}, c.Env...), env...),
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, ExtraFiles: extra,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: c.Group, Credential: c.User},
		WaitDelay:   copyTime,
	}
}

// find returns the path of the program. Like env(1), it distinguishes a program that does not exist
// from one that cannot be run.
func (c Command) find() (string, error) {
	name := c.Args[0]
	if name == "" || strings.Contains(name, "/") {
		return name, c.check(name)
	}
	failure := &StartError{notFound, fmt.Errorf("%s: command not found", name)}
	for _, dir := range filepath.SplitList(c.variable("PATH")) {
		path := filepath.Join(cmp.Or(dir, "."), name)
		if !filepath.IsAbs(path) {
			path = "./" + path
		}
		err := c.check(path)
		if err == nil {
			return path, nil
		}
		if start, ok := errors.AsType[*StartError](err); ok && start.Code == cannotRun {
			failure = start
		}
	}
	return "", failure
}

// check returns an error for a file that does not exist or cannot be run. A relative path is
// relative to the command's folder.
func (c Command) check(path string) error {
	at := path
	if c.Dir != "" && !filepath.IsAbs(path) {
		at = filepath.Join(c.Dir, path)
	}
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &StartError{notFound, fmt.Errorf("%s: no such file", cmp.Or(path, `""`))}
	case err != nil:
		return &StartError{cannotRun, fmt.Errorf("%s: %w", path, cause(err))}
	case info.IsDir():
		return &StartError{cannotRun, fmt.Errorf("%s is a folder", path)}
	case info.Mode().Perm()&0o111 == 0:
		return &StartError{cannotRun, fmt.Errorf("%s: %w", path, syscall.EACCES)}
	}
	return nil
}

func (c Command) variable(name string) (value string) {
	for _, pair := range c.Env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// cause returns the system's error, without the names of our calls.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// signal sends a signal to the command, or does nothing if it has just ended.
func (c *child) signal(sig syscall.Signal) {
	if c.group {
		_ = syscall.Kill(-c.cmd.Process.Pid, sig)
		return
	}
	_ = c.cmd.Process.Signal(sig)
}

// wait passes signals on until the command ends. When ctx ends or the timeout has passed, it ends
// the command with SIGTERM, and with SIGKILL after the grace period. It ends a process group as a
// whole: processes that outlive the command get the SIGKILL.
func (c *child) wait(ctx context.Context, r *run) {
	go func() { c.ended <- c.cmd.Wait() }()
	var timeout, kill <-chan time.Time
	if r.Timeout > 0 {
		timeout = time.After(r.Timeout)
	}
	done, lost := ctx.Done(), r.leases.lost
	end := func() {
		c.signal(syscall.SIGTERM)
		c.signal(syscall.SIGCONT)
		kill = time.After(cmp.Or(r.Grace, 10*time.Second))
		done, timeout = nil, nil
	}
	for {
		select {
		case <-c.ended:
			c.result(&r.out)
			for kill != nil && c.group && syscall.Kill(-c.cmd.Process.Pid, 0) == nil {
				select {
				case <-kill:
					c.signal(syscall.SIGKILL)
					kill = nil
				case <-time.After(20 * time.Millisecond):
				}
			}
			return
		case sig := <-r.Signals:
			c.pass(sig)
		case <-done:
			end()
		case <-lost:
			lost = nil
			end()
		case <-timeout:
			r.out.Timeout = true
			end()
		case <-kill:
			c.signal(syscall.SIGKILL)
			kill = nil
		}
	}
}

func (c *child) result(out *Outcome) {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		out.Signal = status.Signal()
		out.Code = 128 + int(status.Signal())
		return
	}
	out.Code = c.cmd.ProcessState.ExitCode()
}
