package costs

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
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
	return grammar.DecodeEither(n, &u.path, &u.list)
}

// fileList is the price list of an upstream, as written in its file. See costs/schema.json.
type fileList struct {
	Table    `yaml:",inline"`
	Tables   entries[fileTable]
	Split    entries[fact]
	Numbers  formulas
	Buckets  entries[fileBucket]
	Failed   formulas
	Methods  entries[fileMethod]
	Meter    []fileMeter
	Profiles entries[fileProfile]
	Profile  string
}

// sections are the parts of a list that a Table keeps as they are.
type sections struct {
	Uploads  []string // path prefixes
	Override []string // last words of methods that also accept POST
	OAuth    bool     // default of the methods
	Zeros    []string // paths of numbers that responses omit when 0
	Sources  map[string]Source
	Errors   errorForm
	Learn    []learning
	Refusals []refusing
}

// UnmarshalYAML reads bearer, {header, prefix} or {query}.
func (p *Place) UnmarshalYAML(n *yaml.Node) error {
	*p = Place{}
	if n.Kind == yaml.ScalarNode {
		*p = Place{Header: "Authorization", Prefix: "Bearer "}
		return nil
	}
	type plain Place
	return n.Decode((*plain)(p))
}

type fileTable struct {
	Columns, Prompt       []string
	Defaults              map[string]figure
	Unknown, Warn, Source string
	Feed                  Feed
	Rows                  entries[grammar.List[fileRow]]
}

// figure is a number, or a word in its place.
type figure struct {
	number float64
	word   string
}

func (f *figure) UnmarshalYAML(n *yaml.Node) (err error) {
	if f.number, err = strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64); err != nil ||
		n.ShortTag() == "!!str" {
		*f = figure{word: n.Value}
	}
	return nil
}

// fileRow is a figure, or figures by column.
type fileRow struct {
	figure               *figure
	Above                map[string]map[string]float64
	Since, Until, Source string
	Figures              map[string]float64 `yaml:",inline"`
}

func (r *fileRow) UnmarshalYAML(n *yaml.Node) error {
	type plain fileRow
	return grammar.DecodeEither(n, &r.figure, (*plain)(r))
}

type fileBucket struct {
	Bucket                        `yaml:",inline"`
	Unit, Reset, Timezone, Source string
	Daily                         *int64
	Limits                        []fileLimit
}

type fileLimit struct {
	Units, Headroom  int64
	Window, Timezone string
}

type fileMethod struct {
	Route                grammar.List[string]
	Cost                 entries[int64]
	Take, Settle, Failed formulas
	Hold                 entries[holding]
	Usage, Events        []string
	Free                 *formula
	Lapse                quota.Lapse
	TTL                  time.Duration
	Lines                *calls
	Async                *async
	Source, Note         string
	Upload, Form         bool
	OAuth                *bool
}

type fileProfile struct {
	Methods entries[struct {
		Cost   entries[int64]
		Source string
	}]
}

// entries is a YAML mapping in the order of the file.
type entries[T any] []entry[T]

// formulas are expressions by bucket, or by the names that other expressions use.
type formulas = entries[*formula]

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
