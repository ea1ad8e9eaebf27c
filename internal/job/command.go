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
	Args []string // at least the program: a path, or a name that is looked for in PATH
	Dir  string   // "" for the present one
	Env  []string // NAME=VALUE, all of them, with a PATH
	// Files are passed on as they are. Other readers and writers are copied from and to, and
	// awaited for a moment where something that the command started keeps them open.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	User           *syscall.Credential // nil for the present one
	// Group gives the command a process group of its own, which is ended as a whole. Without it
	// the command stays in the group of this process, as a terminal and a pipeline expect.
	Group bool
}

// copyTime is how long what a command started may keep its output open.
const copyTime = 2 * time.Second

const (
	cannotRun = 126
	notFound  = 127
)

// child is a command that was started.
type child struct {
	cmd   *exec.Cmd
	group bool
	ended chan error // of cmd.Wait
}

// start looks for the command and starts it with more variables and files. Errors: StartError.
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

// find is the path of the program. As env(1) does, it tells what was not found from what cannot be
// run.
func (c Command) find() (string, error) {
	name := c.Args[0]
	if strings.Contains(name, "/") {
		return name, c.check(name)
	}
	found := &StartError{notFound, fmt.Errorf("%s: command not found", name)}
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
			found = start
		}
	}
	return "", found
}

// check reports a file that is not there, and one that cannot be run. A relative path is as seen
// from the command's folder.
func (c Command) check(path string) error {
	at := path
	if c.Dir != "" && !filepath.IsAbs(path) {
		at = filepath.Join(c.Dir, path)
	}
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &StartError{notFound, fmt.Errorf("%s: no such file", path)}
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

// cause is what the system said, without the names of our calls.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// signal sends a signal to the command; it does not matter if it has just ended.
func (c *child) signal(sig syscall.Signal) {
	if c.group {
		_ = syscall.Kill(-c.cmd.Process.Pid, sig)
		return
	}
	_ = c.cmd.Process.Signal(sig)
}

// wait passes signals on until the command has ended. When ctx ends or timeout has passed, it is
// asked to end, and killed after grace.
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
		}
	}
}

// result is how the command ended.
func (c *child) result(out *Outcome) {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		out.Signal = status.Signal()
		out.Code = 128 + int(status.Signal())
		return
	}
	out.Code = c.cmd.ProcessState.ExitCode()
}
