package standin

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// field is a field of a GraphQL query. Fragments are part of the field that spreads them.
type field struct {
	name, key  string // key is the name in the response
	size       int64  // argument first or last
	connection bool   // it has such an argument
	below      []field
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
	maxTokens = 50_000
)

// graph expands the fields of a query.
type graph struct {
	doc       *ast.QueryDocument
	variables map[string]any
	fields    int
}

// parseGraph reads the operation that the request names, or its only one.
func parseGraph(q graphRequest) (operation, error) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: q.Query}, maxTokens)
	if err != nil {
		return operation{}, err
	}
	op := doc.Operations.ForName(q.OperationName)
	if op == nil || op.Operation == ast.Subscription {
		return operation{}, errors.New("no such operation")
	}
	g := &graph{doc, map[string]any{}, 0}
	for _, v := range op.VariableDefinitions {
		g.variables[v.Variable], _ = v.DefaultValue.Value(nil)
	}
	maps.Copy(g.variables, q.Variables)
	fields, err := g.selection(op.SelectionSet, 0)
	return operation{op.Operation == ast.Mutation, fields}, err
}

func (g *graph) selection(set ast.SelectionSet, depth int) (all []field, err error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	for _, selected := range set {
		if g.fields++; g.fields > maxFields {
			return nil, errors.New("too many fields")
		}
		var below []field
		switch s := selected.(type) {
		case *ast.InlineFragment:
			if below, err = g.selection(s.SelectionSet, depth+1); err == nil {
				all = append(all, below...)
			}
		case *ast.FragmentSpread:
			fragment := g.doc.Fragments.ForName(s.Name)
			if fragment == nil {
				return nil, fmt.Errorf("no fragment %s", s.Name)
			}
			if below, err = g.selection(fragment.SelectionSet, depth+1); err == nil {
				all = append(all, below...)
			}
		case *ast.Field:
			f := field{name: s.Name, key: s.Alias}
			f.size, f.connection = g.size(s.Arguments)
			f.below, err = g.selection(s.SelectionSet, depth+1)
			all = append(all, f)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// size returns the argument first or last, or false without either.
func (g *graph) size(arguments ast.ArgumentList) (int64, bool) {
	for _, name := range []string{"first", "last"} {
		if a := arguments.ForName(name); a != nil {
			switch n, _ := a.Value.Value(g.variables); n := n.(type) {
			case int64:
				return n, true
			case float64: // of the request's JSON
				return int64(n), true
			}
		}
	}
	return 0, false
}

// readGraph reads a GraphQL request, or sends what is wrong with it and returns false.
func (c *call) readGraph() (op operation, ok bool) {
	var q graphRequest
	if !c.parse(&q) {
		return op, false
	}
	op, err := parseGraph(q)
	if err != nil {
		c.count(&c.s.counts.Failed)
		c.ok(object{"errors": []any{object{"message": "syntax error: " + err.Error(),
			"locations": []any{object{"line": 1, "column": 1}}}}})
	}
	return op, err == nil
}

// graphData makes up data for fields: a connection has at most Rows nodes, every other field one
// value. The values of known fields at the top are given.
func (c *call) graphData(fields []field, given object, seed string) object {
	m := &maker{rows: int64(c.s.Rows), left: maxFields}
	return m.object(fields, given, seed)
}

type maker struct {
	rows int64
	left int // values that may still be made up
}

func (m *maker) object(fields []field, given object, seed string) object {
	values := object{}
	for _, f := range fields {
		if m.left--; m.left < 0 {
			return values
		}
		value, ok := given[f.name]
		switch below := seed + "/" + f.name; {
		case ok:
			values[f.key] = value
		case f.connection:
			values[f.key] = m.connection(f, below)
		case f.below != nil:
			values[f.key] = m.object(f.below, nil, below)
		default:
			values[f.key] = m.scalar(f.name, seed)
		}
	}
	return values
}

func (m *maker) connection(f field, seed string) object {
	given := object{"totalCount": m.rows}
	for _, part := range f.below {
		switch part.name {
		case "nodes", "edges":
			nodes := []any{}
			for i := range min(f.size, m.rows) {
				nodes = append(nodes, m.object(part.below, nil, fmt.Sprintf("%s:%d", seed, i)))
			}
			given[part.name] = nodes
		case "pageInfo":
			given[part.name] = m.object(part.below, object{"hasNextPage": false,
				"hasPreviousPage": false, "startCursor": "start", "endCursor": "end"}, seed)
		}
	}
	return m.object(f.below, given, seed)
}

func (m *maker) scalar(name, seed string) any {
	switch {
	case strings.HasSuffix(strings.ToLower(name), "count"), name == "number":
		return 7
	case strings.HasPrefix(name, "is") || strings.HasPrefix(name, "has"):
		return false
	case strings.HasSuffix(name, "At"):
		return "2026-01-02T03:04:05Z"
	}
	return name + " of " + seed[max(0, len(seed)-100):]
}
