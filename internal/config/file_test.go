package config

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

// A configuration and a price list may come through a pipe. Waiting for one ends with the caller.
func TestPipes(t *testing.T) {
	gone := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for name, path := range map[string]string{"config": fifo(t),
		"costs": write(t, "costs: "+fifo(t))} {
		if _, err := Load(ctx, path, env("HOME", "/h")); !errors.Is(err, gone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := fifo(t)
	go os.WriteFile(path, []byte("ingest: {pages: 3}"), 0)
	if cfg, err := Load(t.Context(), path, env("HOME", "/h")); err != nil || cfg.Ingest.Pages != 3 {
		t.Error(err)
	}
}

// A key that any other user can read is warned of.
func TestExposedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(path, []byte("k"), 0o600))
	for _, c := range []struct {
		mode os.FileMode
		dir  string // of systemd's credentials
		want string
	}{
		{0o600, "", ""},
		{0o400, "", ""},
		{0o640, "", "mode=0640"},
		{0o604, "", "mode=0604"},
		{0o644, "/run/credentials/other.service", "mode=0644"},
		{0o440, filepath.Dir(path) + "/", ""},
	} {
		must(t, os.Chmod(path, c.mode))
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		FileSecret(path, env("CREDENTIALS_DIRECTORY", c.dir)).WarnExposed(log)
		if got := out.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) ||
			strings.Count(got, "\n") > 1 {
			t.Errorf("%o in %s: %s", c.mode, c.dir, got)
		}
	}
	Secret{Env: "K", getenv: env()}.WarnExposed(nil)
}

// TestReadFile: directories, pipes and devices are refused at once, except the null device.
func TestReadFile(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(write(t, "text"), link))
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
			err != nil && !strings.HasSuffix(err.Error(), c.path+": "+c.problem) {
			t.Errorf("%s: %q, %v", c.path, data, err)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestReadPipeGivesUp: a pipe that nothing writes to is reported after the wait.
func TestReadPipeGivesUp(t *testing.T) {
	_, err := readPipe(t.Context(), fifo(t), 8, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "closed it within 1ms") {
		t.Error(err)
	}
}
