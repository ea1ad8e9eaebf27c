package config

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

var modes = [...]string{"enforce", "observe"}

func (r *reader) credential(n *yaml.Node) {
	var c Credential
	var upstream, limits, open, pace *yaml.Node
	r.Fields(n, "credential", yamlfile.Fields{
		"name":            func(n *yaml.Node) { c.Name = r.credentialName(n) },
		"upstream":        func(n *yaml.Node) { upstream = n },
		"api_key":         func(n *yaml.Node) { c.APIKey = r.secret(n) },
		"service_account": func(n *yaml.Node) { r.serviceAccount(n, &c.Account) },
		"project":         func(n *yaml.Node) { c.Account.Project = r.project(n) },
		"limits":          func(n *yaml.Node) { limits = n },
		"mode":            func(n *yaml.Node) { c.Observe = r.observes(n) },
		"when_unreachable": func(n *yaml.Node) {
			r.Fields(n, "when_unreachable", yamlfile.Fields{
				"open": func(n *yaml.Node) { open = n },
				"slice": func(n *yaml.Node) {
					c.SliceUnits = r.Number(n, "slice", 1, quota.MaxUnits)
				},
			})
		},
		"pace": func(n *yaml.Node) { pace, c.Pace = n, r.pace(n) },
	}, "name")
	r.table = r.credentialUpstream(upstream, &c)
	if limits != nil {
		c.Limits = r.limits(limits)
	}
	if open != nil {
		r.List(open, "open", func(n *yaml.Node) { c.Open = append(c.Open, r.method(n)) })
	}
	r.checkPace(pace, c)
	r.cfg.Credentials = append(r.cfg.Credentials, c)
}

// observes reads a mode.
func (r *reader) observes(n *yaml.Node) bool {
	word, ok := r.Text(n, "mode")
	if ok && !slices.Contains(modes[:], word) {
		r.Add(n, "mode: %q is neither enforce nor observe%s", spell.Clip(word),
			spell.DidYouMean(word, modes[:]))
	}
	return word == modes[1]
}

func (r *reader) credentialName(n *yaml.Node) string {
	name, ok := r.Text(n, "name")
	if !ok {
		return ""
	}
	if err := quota.CheckName(name); err != nil {
		r.Add(n, "name: %v", err)
	}
	if r.credentials[name] {
		r.Add(n, "name: two credentials are named %s", spell.Clip(name))
	}
	r.credentials[name] = true
	return name
}

func (r *reader) method(n *yaml.Node) string {
	id, ok := r.Text(n, "open")
	if ok && r.table != nil {
		if _, err := r.table.Lookup(id); err != nil {
			r.Add(n, "open: %v", err)
		}
	}
	return id
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret reads {env: NAME} or {file: path}. Anything else may be the key: it is not repeated.
func (r *reader) secret(n *yaml.Node) Secret {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		r.Add(n, "api_key: this file contains a key (not repeated here): %s", rotate)
		return Secret{}
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[1].Kind != yaml.ScalarNode {
		r.Add(n, "api_key: write {env: %s} or {file: path}, one of them", KeyVariable)
		return Secret{}
	}
	value := n.Content[1]
	switch key := n.Content[0].Value; {
	case value.Tag == "!!null" || value.Value == "":
		r.Add(n, "api_key: name the variable or the file")
	case quota.LooksSecret(value.Value):
		r.Add(n, "api_key: this file contains a key (not repeated here): %s", rotate)
	case key == "env" && !variableForm.MatchString(value.Value):
		r.Add(n, "api_key: env is not the name of a variable, such as %s; if it is the key "+
			"itself, %s", KeyVariable, rotate)
	case key == "env":
		return EnvSecret(value.Value, r.getenv)
	case key == "file":
		return FileSecret(r.path(value.Value), r.getenv)
	default:
		r.Add(n, "api_key: write {env: %s} or {file: path}", KeyVariable)
	}
	return Secret{}
}
