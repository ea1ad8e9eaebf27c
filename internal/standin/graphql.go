package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// field is a field of a GraphQL query. Fragments are part of what they are spread into.
type field struct {
	name, alias string
	args        map[string]any
	below       []field
}

// key is the field's name in the answer.
func (f field) key() string {
	if f.alias != "" {
		return f.alias
	}
	return f.name
}

// pages is how many things a connection asks for, false for a field that is none.
func (f field) pages() (int64, bool) {
	for _, name := range []string{"first", "last"} {
		if n, ok := f.args[name].(float64); ok {
			return int64(n), true
		}
	}
	return 0, false
}

// operation is a GraphQL query or mutation.
type operation struct {
	mutation bool
	fields   []field
}

// graphRequest is the body of a GraphQL request.
type graphRequest struct {
	Query         string         `json:"query"`
	Variables     map[string]any `json:"variables"`
	OperationName string         `json:"operationName"`
}

const (
	maxDepth  = 40
	maxFields = 5_000
)

// lexeme matches what a GraphQL document is made of; anything else between is not one.
var lexeme = regexp.MustCompile(`^(?:[\s,]+|#[^\n\r]*|"""(?s:.*?)"""|"(?:[^"\\\n]|\\.)*"|` +
	`\.\.\.|[A-Za-z_]\w*|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[!$&():=@\[\]{|}])`)

// graph is a parser of GraphQL documents that knows just enough of them to price them.
type graph struct {
	tokens    []string
	variables map[string]any
	sources   map[string][]string // of fragments
	fields    int
}

var errGraph = errors.New("syntax error")

// parseGraph reads the operation that the request names, or its only one.
func parseGraph(q graphRequest) (op operation, err error) {
	defer func() {
		if p := recover(); p != nil {
			failed, ok := p.(graphError)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%w: %s", errGraph, string(failed))
		}
	}()
	g := &graph{variables: map[string]any{}, sources: map[string][]string{}}
	for name, value := range q.Variables {
		g.variables[name] = value
	}
	g.lex(q.Query)
	return g.document(q.OperationName), nil
}

// graphError is what is wrong with a document; parseGraph catches it.
type graphError string

func (g *graph) lex(text string) {
	for text != "" {
		token := lexeme.FindString(text)
		if token == "" {
			panic(graphError(fmt.Sprintf("unexpected %.10q", text)))
		}
		text = text[len(token):]
		if !strings.ContainsAny(token[:1], " \t\r\n\f\v,#") {
			g.tokens = append(g.tokens, token)
		}
	}
}

func (g *graph) peek() string {
	if len(g.tokens) == 0 {
		return ""
	}
	return g.tokens[0]
}

func (g *graph) next() string {
	token := g.peek()
	if token == "" {
		panic(graphError("unexpected end"))
	}
	g.tokens = g.tokens[1:]
	return token
}

func (g *graph) accept(token string) bool {
	if g.peek() != token {
		return false
	}
	g.next()
	return true
}

func (g *graph) want(token string) {
	if got := g.next(); got != token {
		panic(graphError(fmt.Sprintf("expected %q, got %q", token, got)))
	}
}

// document reads all definitions: fragments first, wherever they are, then the operation.
func (g *graph) document(name string) operation {
	type source struct {
		kind, name string
		tokens     []string
	}
	var operations []source
	for g.peek() != "" {
		s := source{kind: "query"}
		if g.peek() != "{" {
			s.kind = g.next()
			if s.kind != "query" && s.kind != "mutation" && s.kind != "fragment" {
				panic(graphError("unexpected " + s.kind))
			}
			if g.peek() != "(" && g.peek() != "{" && g.peek() != "@" {
				s.name = g.next()
			}
		}
		s.tokens = g.definition()
		if s.kind == "fragment" {
			g.sources[s.name] = s.tokens
		} else {
			operations = append(operations, s)
		}
	}
	for _, s := range operations {
		if s.name == name || name == "" && len(operations) == 1 {
			g.tokens = s.tokens
			if g.peek() == "(" {
				g.defaults()
			}
			g.directives(0)
			return operation{s.kind == "mutation", g.selection(0)}
		}
	}
	panic(graphError("no such operation"))
}

// definition is everything to the end of the next selection.
func (g *graph) definition() []string {
	depth, all := 0, g.tokens
	for {
		switch g.next() {
		case "{", "(":
			depth++
		case "}":
			if depth--; depth == 0 {
				return all[:len(all)-len(g.tokens)]
			}
		case ")":
			depth--
		}
	}
}

// defaults reads ($name: Type = value, …).
func (g *graph) defaults() {
	g.want("(")
	for !g.accept(")") {
		g.want("$")
		name := g.next()
		g.want(":")
		for strings.Trim(g.peek(), "[]!") == "" || isName(g.peek()) {
			g.next()
		}
		if g.accept("=") {
			value := g.value(0)
			if _, given := g.variables[name]; !given {
				g.variables[name] = value
			}
		}
		g.directives(0)
	}
}

func isName(token string) bool {
	return token != "" && (token[0] == '_' || token[0]|0x20 >= 'a' && token[0]|0x20 <= 'z')
}

// directives skips them.
func (g *graph) directives(depth int) {
	for g.accept("@") {
		g.next()
		if g.peek() == "(" {
			g.arguments(depth)
		}
	}
}

func (g *graph) selection(depth int) (all []field) {
	if depth > maxDepth {
		panic(graphError("nested too deeply"))
	}
	g.want("{")
	for !g.accept("}") {
		if g.fields++; g.fields > maxFields {
			panic(graphError("too many fields"))
		}
		if g.accept("...") {
			all = append(all, g.spread(depth)...)
			continue
		}
		all = append(all, g.field(depth))
	}
	return all
}

func (g *graph) field(depth int) field {
	f := field{name: g.name()}
	if g.accept(":") {
		f.alias, f.name = f.name, g.name()
	}
	if g.peek() == "(" {
		f.args = g.arguments(depth)
	}
	g.directives(depth)
	if g.peek() == "{" {
		f.below = g.selection(depth + 1)
	}
	return f
}

func (g *graph) name() string {
	token := g.next()
	if !isName(token) {
		panic(graphError(fmt.Sprintf("expected a name, got %.20q", token)))
	}
	return token
}

// spread reads what follows "...": a fragment, by its name or in place.
func (g *graph) spread(depth int) []field {
	if isName(g.peek()) && g.peek() != "on" {
		name := g.next()
		g.directives(depth)
		tokens, ok := g.sources[name]
		if !ok {
			panic(graphError("no fragment " + name))
		}
		rest := g.tokens
		g.tokens = tokens
		g.want("on")
		g.name()
		g.directives(depth)
		fields := g.selection(depth + 1)
		g.tokens = rest
		return fields
	}
	if g.accept("on") {
		g.name()
	}
	g.directives(depth)
	return g.selection(depth + 1)
}

func (g *graph) arguments(depth int) map[string]any {
	args := map[string]any{}
	g.want("(")
	for !g.accept(")") {
		name := g.name()
		g.want(":")
		args[name] = g.value(depth + 1)
	}
	return args
}

func (g *graph) value(depth int) any {
	if depth > maxDepth {
		panic(graphError("nested too deeply"))
	}
	switch token := g.next(); token {
	case "$":
		return g.variables[g.name()]
	case "[":
		list := []any{}
		for !g.accept("]") {
			list = append(list, g.value(depth+1))
		}
		return list
	case "{":
		object := map[string]any{}
		for !g.accept("}") {
			name := g.name()
			g.want(":")
			object[name] = g.value(depth + 1)
		}
		return object
	case "true", "false":
		return token == "true"
	case "null":
		return nil
	default:
		return scalar(token)
	}
}

func scalar(token string) any {
	if n, err := strconv.ParseFloat(token, 64); err == nil {
		return n
	}
	if text, ok := strings.CutPrefix(token, `"""`); ok {
		return strings.TrimSpace(strings.TrimSuffix(text, `"""`))
	}
	var text string
	if json.Unmarshal([]byte(token), &text) == nil {
		return text
	}
	if isName(token) {
		return token
	}
	panic(graphError(fmt.Sprintf("unexpected %.20q", token)))
}

// readGraph reads a GraphQL request, or answers what is wrong with it and returns false.
func (c *call) readGraph() (op operation, ok bool) {
	var q graphRequest
	if !c.parse(&q) {
		return op, false
	}
	op, err := parseGraph(q)
	if err != nil {
		c.count(&c.s.counts.Failed)
		c.json(http.StatusOK, map[string]any{"errors": []any{map[string]any{
			"message": err.Error(), "locations": []any{map[string]any{"line": 1, "column": 1}}}}})
		return op, false
	}
	return op, true
}
