package textfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRead: anything but a regular file is refused at once, whatever its other end does.
func TestRead(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file(t, "text"), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, text, problem string }{
		{file(t, "text"), "text", ""},
		{file(t, "12345678"), "12345678", ""},
		{link, "text", ""},
		{os.DevNull, "", ""},
		{file(t, "123456789"), "", "longer than 8 bytes"},
		{t.TempDir(), "", "is a directory"},
		{fifo(t), "", "is a pipe, not a file"},
		{"/dev/zero", "", "is a device, not a file"},
		{"/dev/ptmx", "", "is a device, not a file"},
	} {
		data, err := Read(c.path, 8)
		if string(data) != c.text || (err == nil) != (c.problem == "") ||
			err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v", c.path, data, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestReadPipe: a pipe is read to its end, however late its writer comes.
func TestReadPipe(t *testing.T) {
	path := fifo(t)
	type content struct {
		data []byte
		err  error
	}
	read := make(chan content)
	go func() {
		data, err := ReadPipe(t.Context(), path, 8)
		read <- content{data, err}
	}()
	w, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"te", "xt"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if got := <-read; string(got.data) != "text" || got.err != nil {
		t.Errorf("%q, %v", got.data, got.err)
	}
	if data,
		err := ReadPipe(t.Context(), file(t, "text"), 8); string(data) != "text" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// TestReadPipeGivesUp: ReadPipe returns when ctx ends, although the writer never comes or never
// finishes.
func TestReadPipeGivesUp(t *testing.T) {
	why := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := ReadPipe(ctx, fifo(t), 8); !errors.Is(err, why) {
		t.Error(err)
	}
	ctx, end := context.WithTimeoutCause(t.Context(), 0, errSilent)
	defer end()
	if _, err := ReadPipe(ctx, fifo(t), 8); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}
