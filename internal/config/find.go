package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/textfile"
	"quotabudget/internal/yamlfile"
)

// maxFileBytes is far above any configuration: what is longer is the wrong file.
const maxFileBytes = 1 << 20

// open finds the file and parses it. The node is nil when there is no file, or nothing in it.
func (r *reader) open(ctx context.Context, path string) (*yaml.Node, error) {
	path, must := r.find(path)
	if path == "" {
		return nil, nil
	}
	data, err := textfile.ReadPipe(ctx, path, maxFileBytes)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && !must:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(path, "no such file")
	case err != nil:
		return nil, fail(path, "%v", reason(err))
	}
	r.cfg.File, r.dir = path, filepath.Dir(path)
	return parse(path, data)
}

// find is the path of the file to read; must means that a person named it.
func (r *reader) find(path string) (_ string, must bool) {
	if path != "" {
		return path, true
	}
	if path = r.getenv("QUOTA_CONFIG"); path != "" {
		return path, true
	}
	const here = "quota.yaml"
	if _, err := os.Lstat(here); err == nil {
		return here, true
	}
	if dir := r.xdg("XDG_CONFIG_HOME", ".config"); dir != "" {
		return filepath.Join(dir, "quota", "quota.yaml"), false
	}
	return "", false
}

// xdg is a directory of the XDG base directory specification; "" when there is no home to find it
// in.
func (r *reader) xdg(variable, below string) string {
	if dir := r.getenv(variable); filepath.IsAbs(dir) { // a relative one is to be ignored
		return dir
	}
	if home := r.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

// reason is the error without the path, which the message begins with.
func reason(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		return about.Err
	}
	return err
}

func parse(path string, data []byte) (*yaml.Node, error) {
	root, problem := yamlfile.Document(data)
	if problem != nil {
		return nil, &Error{Problems: []Problem{{path, problem.Line, problem.Text}}}
	}
	return root, nil
}
