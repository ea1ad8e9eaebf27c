package costs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// discovered is a method as the discovery document has it.
type discovered struct {
	ID          string   `json:"id"`
	HTTPMethod  string   `json:"httpMethod"`
	Path        string   `json:"path"`
	Scopes      []string `json:"scopes"`
	Download    bool     `json:"supportsMediaDownload"`
	MediaUpload struct {
		Protocols map[string]struct {
			Path string `json:"path"`
		} `json:"protocols"`
	} `json:"mediaUpload"`
}

type resource struct {
	Methods   map[string]discovered `json:"methods"`
	Resources map[string]resource   `json:"resources"`
}

func (r resource) walk(visit func(discovered)) {
	for _, m := range r.Methods {
		visit(m)
	}
	for _, sub := range r.Resources {
		sub.walk(visit)
	}
}

// discovery reads the discovery document inside the module that the client is built from.
func discovery(t *testing.T) map[string]discovered {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		t.Fatalf("where google.golang.org/api is: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "youtube", "v3",
		"youtube-api.json"))
	must(t, err)
	var top resource
	must(t, json.Unmarshal(data, &top))
	all := map[string]discovered{}
	top.walk(func(m discovered) { all[m.ID] = m })
	if len(all) < 50 {
		t.Fatalf("the discovery document has only %d methods", len(all))
	}
	return all
}

var template = regexp.MustCompile(`\{[^}]*\}`)

// Each of its requests is named, too.
func TestEveryDiscoveredMethodIsPriced(t *testing.T) {
	table := costs.Default()
	named := func(verb, path, want string) {
		t.Helper()
		path = "/" + strings.TrimPrefix(template.ReplaceAllString(path, "-id%3Dwith:marks"), "/")
		if got, err := table.Method(request(t, verb, path+"?part=id")); got != want {
			t.Errorf("%s %s is named %q, want %s (%v)", verb, path, got, want, err)
		}
	}
	doc := discovery(t)
	for id, d := range doc {
		m, err := table.Lookup(id)
		if err != nil {
			t.Errorf("the discovery document has %s %s, costs.yaml does not: %v", d.HTTPMethod,
				d.Path, err)
			continue
		}
		if m.Verb != d.HTTPMethod || m.Path != "/"+d.Path {
			t.Errorf("%s is %s %s, want %s /%s", id, m.Verb, m.Path, d.HTTPMethod, d.Path)
		}
		if m.Upload != (len(d.MediaUpload.Protocols) > 0) {
			t.Errorf("%s: upload is %v, the discovery document has %v", id, m.Upload,
				d.MediaUpload.Protocols)
		}
		if m.OAuth != (len(d.Scopes) > 0) {
			t.Errorf("%s: oauth is %v, the discovery document has the scopes %v", id, m.OAuth,
				d.Scopes)
		}
		named(d.HTTPMethod, d.Path, id)
		for _, p := range d.MediaUpload.Protocols {
			named(d.HTTPMethod, p.Path, id)
		}
	}
	for _, m := range table.Methods() {
		if _, ok := doc[m.ID]; !ok {
			t.Errorf("costs.yaml has %s, the discovery document does not", m.ID)
		}
	}
}
