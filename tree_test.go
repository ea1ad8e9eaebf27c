package quotabudget_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tree returns the module's source files, without generated ones. It also calls os.Stat on each,
// because go test caches a result until a file changes that the test itself has opened or examined,
// and does not notice the files that the test's child processes read.
func tree(t *testing.T) []string {
	t.Helper()
	paths, err := treeOnce()
	must(t, err)
	return paths
}

var treeOnce = sync.OnceValues(func() (paths []string, err error) {
	skipped := strings.Fields(".git bin state node_modules rapid fuzz")
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case !entry.IsDir():
			paths = append(paths, path)
			_, err = os.Stat(path)
		}
		return err
	})
	return paths, err
})

// files returns the files of the tree in dir whose names end in suffix. The dir "" stands for all.
func files(t *testing.T, dir, suffix string) (paths []string) {
	t.Helper()
	for _, path := range tree(t) {
		if strings.HasPrefix(path, dir) && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	return files
}

// pkg is the part of the output of go list -json that the tests need.
type pkg struct {
	Dir, ImportPath, Name                    string
	Imports, TestImports, XTestImports, Deps []string
	GoFiles                                  []string
}

// packages returns the packages of the module by their names in the table of layers.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	tree(t)
	all, err := packagesOnce()
	must(t, err)
	return all
}

var packagesOnce = sync.OnceValues(func() (map[string]pkg, error) {
	out, err := exec.Command("go", "list",
		"-json=Dir,ImportPath,Name,Imports,TestImports,XTestImports,Deps,GoFiles", "./...").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, err
	}
	all := map[string]pkg{}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := in.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[layerName(p.ImportPath)] = p
	}
})

// layerName returns a package's name in the table of layers; "" for a package of another module.
func layerName(importPath string) string {
	if importPath == module {
		return "."
	}
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(rest, "internal/")
}

// sources returns the text of each of the package's files by name, without tests.
func (p pkg) sources(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, name := range p.GoFiles {
		texts[name] = read(t, filepath.Join(p.Dir, name))
	}
	return texts
}

// split separates Go source into comments, string literals and other code. Each result has the
// length of text, with blanks in place of the other two.
func split(text string) (comments, literals, code string) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	parts := map[token.Token][]byte{}
	for _, kind := range []token.Token{token.COMMENT, token.STRING, token.EOF} {
		parts[kind] = []byte(blank(text))
	}
	for end := 0; ; {
		pos, kind, literal := s.Scan()
		if kind != token.COMMENT && kind != token.STRING && kind != token.EOF {
			continue
		}
		begin := file.Offset(pos)
		copy(parts[token.EOF][end:], text[end:begin])
		end = begin + len(literal)
		if kind == token.EOF {
			break
		}
		copy(parts[kind][begin:], literal)
	}
	return string(parts[token.COMMENT]), string(parts[token.STRING]), string(parts[token.EOF])
}

// blank returns text with every byte except line breaks replaced by a blank.
func blank(text string) string {
	blanks := []byte(text)
	for i, b := range blanks {
		if b != '\n' {
			blanks[i] = ' '
		}
	}
	return string(blanks)
}
