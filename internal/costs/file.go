package costs

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// frontFile is an index of upstreams.
type frontFile struct {
	Default   string
	Upstreams entries[fileUpstream]
}

// fileUpstream is the path of a list, or the list itself.
type fileUpstream struct {
	path string
	list *fileList
}

func (u *fileUpstream) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&u.path)
	}
	return n.Decode(&u.list)
}

// fileList is the price list of an upstream, as written in its file. See costs/schema.json.
type fileList struct {
	Service, Version, Endpoint string
	Hosts                      []string
	Environment                map[string]string
	Credential                 *Place
	Uploads, Override          []string
	OAuth                      bool
	Zeros                      []string
	Sources                    map[string]Source
	Tables                     entries[fileTable]
	Split                      entries[fileFact]
	Numbers                    entries[string]
	Buckets                    entries[fileBucket]
	Failed                     entries[string]
	Methods                    entries[fileMethod]
	Errors                     fileErrors
	Learn                      []fileLearn
	Refusals                   []fileRefusal
	Meter                      []fileMeter
	Profiles                   entries[fileProfile]
	Profile                    string
}

// UnmarshalYAML reads bearer, {header, prefix} or {query}.
func (p *Place) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*p = bearer()
		return nil
	}
	type plain Place
	return n.Decode((*plain)(p))
}

type fileTable struct {
	Columns, Prompt       []string
	Defaults              map[string]yaml.Node
	Unknown, Warn, Source string
	Feed                  Feed
	Rows                  entries[fileRows]
}

// fileRows is the row of a key, or rows by date.
type fileRows []yaml.Node

func (r *fileRows) UnmarshalYAML(n *yaml.Node) error { return decodeList(n, (*[]yaml.Node)(r)) }

// fileFact is an expression, or {request, response}.
type fileFact struct{ Request, Response string }

func (f *fileFact) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&f.Request)
	}
	type plain fileFact
	return n.Decode((*plain)(f))
}

type fileBucket struct {
	Unit, Metric, Reset, Timezone, Source, Note string
	Split                                       []string
	Daily                                       *int64
	Limits                                      []fileLimit
	Required                                    bool
}

type fileLimit struct {
	Units, Headroom  int64
	Window, Timezone string
}

type fileMethod struct {
	Route                texts
	Cost                 entries[int64]
	Take, Settle, Failed entries[string]
	Hold                 entries[fileHold]
	Usage, Events        []string
	Free, Lapse, TTL     string
	Lines                *struct{ File, Sent, List, Route, Body string }
	Async                *fileAsync
	Source, Note         string
	Upload, Form         bool
	OAuth                *bool
}

type fileAsync struct {
	Poll, Done, Results, Lapse string
	Headers                    map[string]string
}

// fileHold is an estimate, or {estimate, most, certain}.
type fileHold struct{ Estimate, Most, Certain string }

func (h *fileHold) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&h.Estimate)
	}
	type plain fileHold
	return n.Decode((*plain)(h))
}

// fileItems is a path of items, and a condition on each.
type fileItems struct{ At, Where string }

type fileErrors struct {
	Metric, Since, Word string
	Message             []string
	Reasons             []struct {
		fileItems    `yaml:",inline"`
		Name, Domain string
	}
	Found entries[struct {
		fileItems `yaml:",inline"`
		Take      string
	}]
}

type fileLearn struct {
	Bucket, Where, Window, Timezone, Source string
	Limit, Used, Remaining, Reset           filePlace
}

type fileRefusal struct {
	Status                          texts
	Where, Kind, As, Bucket, Source string
	Until                           filePlace
}

// filePlace is a text that depends on the key, or {header: NAME} or {path: PATH} with a form.
type filePlace struct {
	text                     string
	number                   bool // the text is a number
	Header, Path, Policy, As string
}

func (p *filePlace) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		p.text, p.number = n.Value, n.ShortTag() != "!!str"
		return nil
	}
	type plain filePlace
	return n.Decode((*plain)(p))
}

type fileProfile struct {
	Methods entries[struct {
		Cost   entries[int64]
		Source string
	}]
}

// entries is a YAML mapping in the order of the file.
type entries[T any] []entry[T]

type entry[T any] struct {
	key   string
	value T
}

func (e *entries[T]) UnmarshalYAML(n *yaml.Node) (err error) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		var value T
		err = errors.Join(err, n.Content[i+1].Decode(&value))
		*e = append(*e, entry[T]{n.Content[i].Value, value})
	}
	return err
}

// texts is a text or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error { return decodeList(n, (*[]string)(t)) }

// decodeList decodes a list, or a value that stands for a list of one.
func decodeList[T any](n *yaml.Node, list *[]T) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode(list)
	}
	*list = make([]T, 1)
	return n.Decode(&(*list)[0])
}
