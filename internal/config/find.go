package config

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/textfile"
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

// find is the path of the file to read; must says that a person named it.
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

// xdg is a directory of the XDG base directory specification; "" when there is no home to find it in.
func (r *reader) xdg(variable, below string) string {
	if dir := r.getenv(variable); filepath.IsAbs(dir) { // a relative one is to be ignored
		return dir
	}
	if home := r.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

// reason is the error without the path, which stands before it already.
func reason(err error) error {
	var about *fs.PathError
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

// parse reads the one YAML document of the file.
func parse(path string, data []byte) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := in.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(path, data, err)
	}
	switch err := in.Decode(&more); {
	case err == nil:
		return nil, &Error{Problems: []Problem{{path, more.Line, "a second YAML document: write one"}}}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(path, data, err)
	}
	return doc.Content[0], nil
}

// syntaxError puts the parser's words after the place, with what is behind them where that is known. The parser's word on
// anchors repeats text of the file, which may be a key.
func syntaxError(path string, data []byte, err error) *Error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		digits, after, _ := strings.Cut(rest, ": ")
		for _, d := range digits {
			line = line*10 + int(d-'0')
		}
		text = after
		if strings.HasPrefix(text, "did not find expected") {
			line++ // the parser counts from 0 here, and from 1 elsewhere
		}
	}
	for i, l := range bytes.Split(data, []byte("\n")) {
		if indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return &Error{Problems: []Problem{{path, i + 1, "a tab: YAML is indented with spaces"}}}
		}
	}
	switch {
	case strings.Contains(text, "anchor"):
		text = "an alias (*) of nothing: put the text into quotes"
	case strings.HasPrefix(text, "mapping values"):
		text += ": is the indentation right?"
	case strings.Contains(text, "did not find expected ',' or"), strings.Contains(text, "end of stream"),
		strings.HasPrefix(text, "could not find expected ':'"):
		text += ": is a bracket or a quote not closed, or the file cut short?"
	}
	return &Error{Problems: []Problem{{path, line, text}}}
}
