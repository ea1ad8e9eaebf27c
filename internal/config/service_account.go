package config

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/textfile"
	"quotabudget/internal/yamlfile"
)

// ServiceAccount reads what Google itself has counted of a credential's quota. Like a Secret, it
// says where the key is, and does not hold it.
type ServiceAccount struct {
	File     string // path of the JSON key; "" for no account
	Endpoint string // URL that ends in a slash, of a stand-in; "" for Google
	Project  string // "" for that of the account
}

// Key reads the file, of at most so many bytes. Errors name the file, never what it holds.
func (s ServiceAccount) Key(most int64) ([]byte, error) {
	text, err := textfile.Read(s.File, most)
	if err != nil {
		return nil, fmt.Errorf("service account: file %s: %w", s.File, reason(err))
	}
	return text, nil
}

// Secret is the file as a secret, which other users should not be able to read.
func (s ServiceAccount) Secret(getenv func(string) string) Secret {
	return FileSecret(s.File, getenv)
}

func (r *reader) serviceAccount(n *yaml.Node, into *ServiceAccount) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		r.Add(n, "service_account: write {file: PATH}, where PATH is the JSON key of the account")
		return
	}
	r.Fields(n, "service_account", yamlfile.Fields{
		"file": func(n *yaml.Node) {
			if path, ok := r.Text(n, "file"); ok {
				into.File = r.path(path)
			}
		},
		"endpoint": func(n *yaml.Node) {
			into.Endpoint = withSlash(r.url(n, "endpoint", checkEndpoint))
		},
	}, "file")
}

// projectForm matches a project's ID or number.
var projectForm = regexp.MustCompile(`^(?:[a-z0-9.-]+:)?[a-z0-9-]{1,63}$`)

func (r *reader) project(n *yaml.Node) string {
	name, ok := r.Text(n, "project")
	if ok && !projectForm.MatchString(name) {
		r.Add(n, "project: write the ID of the project, such as my-project-1234, or its number")
	}
	return name
}
