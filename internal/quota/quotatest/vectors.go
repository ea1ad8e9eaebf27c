package quotatest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"quotabudget/internal/quota"
)

//go:embed vectors/*.json
var vectorFiles embed.FS

// vector is one story: limits, and what is asked and answered at which moment. vectors/README.md
// describes the format.
type vector struct {
	Case   string  `json:"case"`
	Limits []limit `json:"limits"`
	Steps  []step  `json:"steps"`
}

type limit struct {
	Bucket   string `json:"bucket"`
	Units    int64  `json:"units"`
	Headroom int64  `json:"headroom"`
	Window   string `json:"window"`
	Timezone string `json:"timezone"`
}

// testVectors runs the step tables.
func testVectors(t *testing.T, h Harness) {
	l := h.Open(t)
	for file, vectors := range loadVectors(t) {
		t.Run(file, func(t *testing.T) {
			for _, v := range vectors {
				t.Run(v.Case, func(t *testing.T) { v.run(t, h, l) })
			}
		})
	}
}

func loadVectors(t testing.TB) map[string][]vector {
	t.Helper()
	files, err := vectorFiles.ReadDir("vectors")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]vector, len(files))
	for _, f := range files {
		text, err := vectorFiles.ReadFile(path.Join("vectors", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var vectors []vector
		if err := strict(text, &vectors); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		all[strings.TrimSuffix(f.Name(), ".json")] = vectors
	}
	return all
}

// strict decodes JSON in which every field must be known.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (v vector) run(t *testing.T, h Harness, l quota.Ledger) {
	r := runner{t: t, ledger: l, credential: newCredential(), charges: map[string]made{}}
	for i, s := range v.Steps {
		if s.Now != nil {
			h.SetNow(t, *s.Now)
		}
		limits := v.Limits
		if s.Limits != nil {
			limits = s.Limits
		}
		r.step = fmt.Sprintf("step %d", i+1)
		r.do(s, limitsOf(t, limits))
	}
}

func limitsOf(t testing.TB, list []limit) []quota.Limit {
	t.Helper()
	limits := make([]quota.Limit, len(list))
	for i, l := range list {
		w, err := quota.ParseWindow(l.Window, l.Timezone)
		if err != nil {
			t.Fatal(err)
		}
		limits[i] = quota.Limit{Bucket: bucketName(l.Bucket), Units: l.Units, Headroom: l.Headroom,
			Window: w}
	}
	return limits
}
