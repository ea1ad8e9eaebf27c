package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// ReadFile returns the content, at most max bytes, of the regular file at path. It never blocks:
// directories, pipes and devices are errors, except the null device, which is an empty file. Errors
// name the path.
func ReadFile(path string, max int64) ([]byte, error) {
	// Without O_NONBLOCK, opening a pipe waits for its writer, and opening a terminal for its
	// line.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	null, failed := os.Stat(os.DevNull)
	switch mode := info.Mode(); {
	case mode.IsRegular(), failed == nil && os.SameFile(info, null):
		return readAll(f, max)
	case mode.IsDir():
		err = syscall.EISDIR
	case mode&os.ModeNamedPipe != 0:
		err = errors.New("is a pipe, not a file")
	default:
		err = errors.New("is a device, not a file")
	}
	return nil, &os.PathError{Op: "read", Path: path, Err: err}
}

// ReadPipe is like ReadFile, but also reads a pipe, such as that of <(command). It waits for the
// writer until ctx ends, and at most a minute.
func ReadPipe(ctx context.Context, path string, max int64) ([]byte, error) {
	// a program that decrypts a file may first ask a person for a password
	return readPipe(ctx, path, max, time.Minute)
}

func readPipe(ctx context.Context, path string, max int64, wait time.Duration) ([]byte, error) {
	if !IsPipe(path) {
		return ReadFile(path, max)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("nothing wrote to the pipe and closed it within %s", wait))
	defer cancel()
	var data []byte
	var err error
	done := make(chan struct{})
	// If ctx ends first, the goroutine stays behind until the pipe's writer or the process ends,
	// because opening a pipe cannot be interrupted.
	go func() {
		defer close(done)
		var f *os.File
		if f, err = os.Open(path); err == nil {
			defer f.Close()
			data, err = readAll(f, max)
		}
	}()
	select {
	case <-done:
		return data, err
	case <-ctx.Done():
		return nil, &os.PathError{Op: "read", Path: path, Err: context.Cause(ctx)}
	}
}

// IsPipe reports whether the path names a pipe.
func IsPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

func readAll(f *os.File, max int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		return nil, &os.PathError{Op: "read", Path: f.Name(),
			Err: fmt.Errorf("longer than %d bytes", max)}
	}
	return data, err
}
