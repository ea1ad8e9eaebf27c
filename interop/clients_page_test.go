//go:build interop

package interop

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestClientsPage runs the examples of the page about the ledger's clients.
func TestClientsPage(t *testing.T) {
	const page, documented = "docs/http.md", "http://127.0.0.1:8080"
	want := map[string]int{"python": 4, "js": 4, "go": 3} // that of Go only holds
	for language, example := range map[string]func(t *testing.T, dir, text string) []byte{
		"python": func(t *testing.T, dir, text string) []byte {
			return run(t, dir, python, write(t, dir, "example.py", "fetch_pages = lambda: 3\n"+text))
		},
		"js": func(t *testing.T, dir, text string) []byte {
			return run(t, dir, "node", write(t, dir, "example.mjs", text+
				"function fetchPages() { return 3 }\n"))
		},
		"go": func(t *testing.T, dir, text string) []byte {
			text = strings.ReplaceAll(text, "night.journal", filepath.Join(dir, "night.journal"))
			return run(t, root, "go", "run", write(t, dir, "example.go", `package main

import (
	"context"
	"time"

	"quotabudget/client"
)

func main() {
	ctx := context.Background()
`+text+`
	if err != nil || settled.Late {
		panic(err)
	}
}

func fetchPages() int64 { return 3 }
`))
		},
	} {
		t.Run(language, func(t *testing.T) {
			s := startLedger(t, "", hourly, "")
			dir := t.TempDir()
			gather(t, dir, "celery_main.py")
			out := example(t, dir, snippet(t, page, language, documented, s.server.address))
			if used, held := s.used(t); used != want[language] || held != 0 || len(out) > 0 {
				t.Errorf("%d units are used and %d held: %s", used, held, out)
			}
		})
	}
}
