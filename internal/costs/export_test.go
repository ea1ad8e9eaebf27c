package costs

import (
	"io/fs"
	"testing"
)

// Keys are the keys that the parser knows, by the sections of a list that it has read.
func Keys(t *testing.T, text string, files fs.FS) map[string]map[string]bool {
	t.Helper()
	p := newParser(files)
	p.keys = map[string]map[string]bool{}
	p.front("costs.yaml", []byte(text))
	for _, err := range p.errs {
		t.Error(err)
	}
	return p.keys
}
