package costs

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	graphql "github.com/vektah/gqlparser/v2/parser"
)

// Bounds of a query. The first is GitHub's; the others limit the time for a hostile query.
const (
	maxQueryNodes  = 500_000
	maxQueryTokens = 50_000
	maxQueryDepth  = 64
	maxQueryFields = 20_000 // with fragments expanded
)

// graphQL is the body of a GraphQL request.
type graphQL struct {
	Query     string
	Variables map[string]any
	Operation string // operationName; "" where the query has one operation
}

// points returns the cost of the query by GitHub's formula: for each connection one request per
// parent, summed, divided by 100 and rounded, and at least 1. A connection is a field with the
// argument first or last; its parents are the product of those arguments around it. A query that
// could return more than maxQueryNodes nodes is an error, as at GitHub.
//
// It does not check the query against a schema. Fields that @skip or @include may omit count.
func points(r graphQL) (float64, error) {
	doc, operation, err := parseQuery(r)
	if err != nil {
		return 0, err
	}
	c := counter{fragments: doc.Fragments, definitions: operation.VariableDefinitions,
		variables: r.Variables, open: map[string]bool{}}
	err = c.selections(operation.SelectionSet, 1, 0)
	return max(1, math.Round(float64(c.requests)/100)), err
}

// operation returns the kind of the operation: query, mutation or subscription.
func operation(r graphQL) (string, error) {
	_, asked, err := parseQuery(r)
	if err != nil {
		return "", err
	}
	return string(asked.Operation), nil
}

func parseQuery(r graphQL) (*ast.QueryDocument, *ast.OperationDefinition, error) {
	doc, err := graphql.ParseQueryWithTokenLimit(&ast.Source{Input: r.Query}, maxQueryTokens)
	if err != nil {
		return nil, nil, fmt.Errorf("the GraphQL query cannot be read: %w", err)
	}
	operation := doc.Operations.ForName(r.Operation)
	if operation == nil {
		return nil, nil, errors.New("the GraphQL query has no such operation, or several and no " +
			"operationName")
	}
	return doc, operation, nil
}

// counter adds up the requests and nodes of a query.
type counter struct {
	fragments   ast.FragmentDefinitionList
	definitions ast.VariableDefinitionList
	variables   map[string]any
	open        map[string]bool // fragments around the current field

	requests, nodes int64
	fields          int
}

// selections counts the selected fields at a depth, for a number of parents.
func (c *counter) selections(set ast.SelectionSet, parents int64, depth int) error {
	if depth > maxQueryDepth {
		return fmt.Errorf("the GraphQL query is nested more than %d deep", maxQueryDepth)
	}
	for _, selection := range set {
		if c.fields++; c.fields > maxQueryFields {
			return fmt.Errorf("the GraphQL query has more than %d fields", maxQueryFields)
		}
		var err error
		switch s := selection.(type) {
		case *ast.InlineFragment:
			err = c.selections(s.SelectionSet, parents, depth+1)
		case *ast.FragmentSpread:
			err = c.spread(s.Name, parents, depth+1)
		case *ast.Field:
			err = c.field(s, parents, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// field counts a field. A field with an argument first or last is a connection, whose size is the
// larger of the two.
func (c *counter) field(f *ast.Field, parents int64, depth int) error {
	size, connection := int64(0), false
	for _, argument := range f.Arguments {
		if argument.Name != "first" && argument.Name != "last" {
			continue
		}
		value, err := c.value(argument.Value)
		if err != nil {
			return err
		}
		if value == nil { // null, which means no argument
			continue
		}
		n, ok := value.(float64)
		if !ok || n < 0 || n != math.Trunc(n) {
			return fmt.Errorf("the argument %s of the GraphQL query is not a whole number",
				argument.Name)
		}
		size, connection = max(size, int64(min(n, maxQueryNodes+1))), true
	}
	if connection {
		c.requests += parents
		parents *= size
		c.nodes += parents
	}
	if c.nodes > maxQueryNodes {
		return fmt.Errorf("the GraphQL query may return more than %d nodes", maxQueryNodes)
	}
	return c.selections(f.SelectionSet, parents, depth)
}

func (c *counter) spread(name string, parents int64, depth int) error {
	fragment := c.fragments.ForName(name)
	switch {
	case fragment == nil:
		return fmt.Errorf("the GraphQL query has no fragment %.60q", name)
	case c.open[name]:
		return fmt.Errorf("the GraphQL fragment %.60q contains itself", name)
	}
	c.open[name] = true
	defer delete(c.open, name)
	return c.selections(fragment.SelectionSet, parents, depth)
}

// value returns nil for null and for a variable without a value, which is an absent argument, a
// float64 for a number, and the text of anything else.
func (c *counter) value(v *ast.Value) (any, error) {
	switch {
	case v == nil || v.Kind == ast.NullValue:
		return nil, nil
	case v.Kind == ast.IntValue:
		n, err := strconv.ParseFloat(v.Raw, 64)
		return n, err
	case v.Kind != ast.Variable:
		return v.Raw, nil
	}
	definition := c.definitions.ForName(v.Raw)
	if given, ok := c.variables[v.Raw]; ok {
		return given, nil
	}
	switch {
	case definition == nil:
		return nil, fmt.Errorf("the GraphQL query does not declare its variable %.60q", v.Raw)
	case definition.DefaultValue != nil && definition.DefaultValue.Kind == ast.Variable:
		return nil, fmt.Errorf("the default of the variable %.60q is another variable", v.Raw)
	case definition.DefaultValue != nil:
		return c.value(definition.DefaultValue)
	case definition.Type != nil && definition.Type.NonNull:
		return nil, fmt.Errorf("the variable %.60q of the GraphQL query has no value", v.Raw)
	}
	return nil, nil
}
