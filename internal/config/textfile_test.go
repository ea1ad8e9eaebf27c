package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadFile: anything but a regular file is refused at once, whatever its other end does.
func TestReadFile(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(write(t, "text"), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, text, problem string }{
		{write(t, "text"), "text", ""},
		{write(t, "12345678"), "12345678", ""},
		{link, "text", ""},
		{os.DevNull, "", ""},
		{write(t, "123456789"), "", "longer than 8 bytes"},
		{t.TempDir(), "", "is a directory"},
		{fifo(t), "", "is a pipe, not a file"},
		{"/dev/zero", "", "is a device, not a file"},
		{"/dev/ptmx", "", "is a device, not a file"},
	} {
		data, err := ReadFile(c.path, 8)
		if string(data) != c.text || (err == nil) != (c.problem == "") ||
			err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v", c.path, data, err)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestReadPipeGivesUp: a pipe that nothing writes to is reported after a minute.
func TestReadPipeGivesUp(t *testing.T) {
	ctx, end := context.WithTimeoutCause(t.Context(), 0, errSilent)
	defer end()
	if _, err := ReadPipe(ctx, fifo(t), 8); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}
