package standin

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// field is a field of a GraphQL query. Fragments are part of the field that spreads them.
type field struct {
	name, key  string // key is the name in the response
	size       int64  // value of the argument first or last
	connection bool   // the field has the argument first or last
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
	maxFields = 5_000 // fields in a query; this limits its depth too
	maxTokens = 50_000
)

// graph expands the fields of a query.
type graph struct {
	doc       *ast.QueryDocument
	variables map[string]any
	fields    int
}

// parseGraph parses the operation that the request names, or its only one.
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
	fields, err := g.selection(op.SelectionSet)
	return operation{op.Operation == ast.Mutation, fields}, err
}

func (g *graph) selection(set ast.SelectionSet) (all []field, err error) {
	for _, selected := range set {
		if g.fields++; g.fields > maxFields {
			return nil, errors.New("too many fields")
		}
		var set ast.SelectionSet
		switch s := selected.(type) {
		case *ast.Field:
			f := field{name: s.Name, key: s.Alias}
			f.size, f.connection = g.size(s.Arguments)
			f.below, err = g.selection(s.SelectionSet)
			all = append(all, f)
		case *ast.InlineFragment:
			set = s.SelectionSet
		case *ast.FragmentSpread:
			fragment := g.doc.Fragments.ForName(s.Name)
			if fragment == nil {
				return nil, fmt.Errorf("no fragment %s", s.Name)
			}
			set = fragment.SelectionSet
		}
		if set != nil {
			var below []field
			below, err = g.selection(set)
			all = append(all, below...)
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
			case float64: // from a variable in the request
				return int64(n), true
			}
		}
	}
	return 0, false
}

// readGraph reads a GraphQL request. If it is invalid, readGraph sends the error and ends the
// handler.
func (c *call) readGraph() operation {
	var q graphRequest
	c.parse(&q)
	op, err := parseGraph(q)
	if err != nil {
		c.failGraph(object{"errors": []any{object{"message": "syntax error: " + err.Error(),
			"locations": []any{object{"line": 1, "column": 1}}}}})
	}
	return op
}

// failGraph sends an error of GraphQL, whose status is 200, and ends the handler.
func (c *call) failGraph(doc object) {
	c.count(&c.s.counts.Failed)
	c.report()
	c.ok(doc)
	panic(errEnded)
}

// graphData generates data for fields. given has the values of known fields.
func (c *call) graphData(fields []field, given object) object {
	left := maxFields // values that may still be made up
	return makeUp(fields, given, c.s.Rows, c.s.Rows, &left)
}

// makeUp generates values for fields. A list has n nodes; the list of a connection has as many as
// the query requests, but at most rows.
func makeUp(fields []field, given object, n, rows int, left *int) object {
	values := object{}
	for _, f := range fields {
		if *left--; *left < 0 {
			return values
		}
		below := n
		if f.connection {
			below = min(int(f.size), rows)
		}
		value, ok := given[f.name].(object)
		switch lower := strings.ToLower(f.name); {
		case ok: // only the requested members
			values[f.key] = object{}
			for _, member := range f.below {
				values[f.key].(object)[member.key] = value[member.name]
			}
		case f.name == "nodes" || f.name == "edges":
			nodes := []any{}
			for range n {
				nodes = append(nodes, makeUp(f.below, nil, rows, rows, left))
			}
			values[f.key] = nodes
		case f.below != nil:
			values[f.key] = makeUp(f.below, nil, below, rows, left)
		case strings.HasSuffix(lower, "count"):
			values[f.key] = n
		case strings.HasPrefix(f.name, "is") || strings.HasPrefix(f.name, "has"):
			values[f.key] = false
		default:
			values[f.key] = f.name
		}
	}
	return values
}

// shopifyRoutes count points of the GraphQL Admin API in a bucket that refills continuously.
var shopifyRoutes = []route{
	{`POST /admin/api/(?:\d{4}-\d{2}|unstable)/graphql\.json`, (*call).shopifyGraph, ""}}

const maxQuery = 1_000 // maximum points of one query

// shopifyGraph serves a query. It is admitted if its maximum cost fits, and is billed for the nodes
// that it returns.
func (c *call) shopifyGraph() {
	op := c.readGraph()
	requested := shopifyPoints(op, math.MaxInt64)
	actual := shopifyPoints(op, int64(c.s.Rows))
	if requested > maxQuery {
		c.failGraph(c.doc("too_large", object{"requested": requested}))
	}
	c.admit(cost{bucket: "points", billed: actual, held: requested})
	unlock := c.s.locked()
	c.s.meter.settle(c.now, c.held) // so that the response reports the remaining points
	c.held = nil
	unlock()
	c.ok(c.doc("reply", object{"data": c.graphData(op.fields, nil), "requested": requested,
		"actual": actual}))
}

// shopifyPoints returns the points of an operation: 1 for each object, 2 for each connection and
// the points of its nodes, 0 for scalars, 10 for each mutation. A connection has as many nodes as
// it requests, but at most rows.
func shopifyPoints(op operation, rows int64) int64 {
	var sum func(fields []field) int64
	sum = func(fields []field) (points int64) {
		for _, f := range fields {
			switch below := sum(f.below); {
			case f.connection:
				points += 2 + max(0, min(f.size, rows, maxQuery+1))*max(1, below)
			case f.name == "edges" || f.name == "pageInfo":
				points += below
			case f.below != nil:
				points += 1 + below
			}
			points = min(points, 1<<40)
		}
		return points
	}
	points := sum(op.fields)
	if op.mutation {
		points = min(points, 1<<40) + 9*int64(len(op.fields))
	}
	return points
}
