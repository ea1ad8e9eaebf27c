package costs

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/types"
)

// builtins returns the functions of the language that expressions may use. Each takes time
// proportional to its input.
func builtins() []string {
	return strings.Fields("min max abs ceil floor round int float len lower upper trim split " +
		"any all none filter map sum first last")
}

// scope is the set of names that an expression may use.
type scope struct {
	Kind    scopeKind
	Facts   []string              // texts about a request: model
	Numbers []string              // known before the request is sent
	Tables  map[string]PriceTable // functions: price(model)
	Found   []string              // objects of an error
}

// scopeKind is the moment at which an expression is evaluated.
type scopeKind int

const (
	scopeRequest scopeKind = iota // before the request is sent
	scopeHold                     // before the request is sent, with quantiles: p95
	scopeAnswer                   // after the response
	scopeRefused                  // after an error response
	scopeItem                     // for one item of a list in a response
)

// quantiles maps the names of quantiles in an expression to percentiles.
var quantiles = map[string]int{"p50": 50, "p90": 90, "p95": 95, "p99": 99}

// dayVariable names the day on which the request is sent, such as 2026-12-01. Tables use the prices
// of that day.
const dayVariable = "_day"

// variables maps the names in a scope to their values.
type variables map[string]any

// roots are the names of JSON values, whose paths are known only at evaluation.
var roots = map[string]bool{"body": true, "answer": true, "usage": true, "item": true,
	"lines": true}

// sizes maps a body to the variable that replaces its len.
var sizes = map[string]string{"body": "body_bytes", "answer": "answer_bytes"}

// types returns the types of the names in the scope; JSON may have any type.
func (s scope) types() types.Map {
	if s.Kind == scopeItem {
		return types.Map{"item": types.Any}
	}
	texts := types.TypeOf(map[string]string{})
	env := types.Map{dayVariable: types.String, "method": types.String, "query": texts, "path": texts,
		"header": types.TypeOf(func(string) string { return "" }),
		"count":  types.TypeOf(func(string) any { return 0 })}
	for _, name := range s.Facts {
		env[name] = types.String
	}
	switch s.Kind {
	case scopeHold:
		for name := range quantiles {
			env[name] = types.Float64
		}
		fallthrough
	case scopeRequest:
		env["body"], env["body_bytes"], env["lines"] = types.Any, types.Int, types.Any
		for _, name := range s.Numbers {
			env[name] = types.Float64
		}
	case scopeRefused:
		words := types.TypeOf(func(...string) bool { return false })
		maps.Copy(env, types.Map{"message": types.String, "cut": types.Bool,
			"reasons": types.TypeOf([]reason{}), "says": words, "only": words})
		for _, name := range s.Found {
			env[name] = types.TypeOf(map[string]any{})
		}
		fallthrough
	case scopeAnswer:
		units := types.TypeOf(map[string]float64{})
		maps.Copy(env, types.Map{"answer": types.Any, "usage": types.Any, "status": types.Int,
			"answer_bytes": types.Int, "held": units, "most": units})
	}
	return env
}

// reserved reports whether a name already has a meaning in expressions.
func reserved(name string) bool {
	names := append(builtins(), "distinct", "graphql_operation", "graphql_points", "true", "false",
		"nil", "let", "if", "else", "in", "not", "and", "or", "matches", "contains")
	for kind := scopeRequest; kind <= scopeItem; kind++ {
		names = append(names, slices.Collect(maps.Keys(scope{Kind: kind}.types()))...)
	}
	return slices.Contains(names, name)
}

// reason is a word in an error response that says what is wrong.
type reason struct {
	Reason string `expr:"reason"`
	Domain string `expr:"domain"`
}

// queryFunction makes a function of expressions that reads the GraphQL request in a body.
func queryFunction[T any](name string, read func(graphQL) (T, error)) expr.Option {
	return expr.Function(name, func(params ...any) (any, error) {
		var value T
		r, err := ofQuery(params[0])
		if err == nil {
			value, err = read(r)
		}
		if err != nil {
			return nil, &requestError{err}
		}
		return value, nil
	}, new(func(any) T))
}

// distinct counts the different texts and numbers in a list.
func distinct(params ...any) (any, error) {
	list, ok := params[0].([]any)
	if !ok {
		return nil, errors.New("the argument of distinct is not a list")
	}
	values := map[any]bool{}
	for _, item := range list {
		switch item.(type) {
		case string, float64, int:
			values[item] = true
		}
	}
	return float64(len(values)), nil
}

// requestError describes a problem of a request, for its sender.
type requestError struct{ err error }

// Error returns the problem.
func (e *requestError) Error() string { return e.err.Error() }

// ofQuery returns the GraphQL request in a body. A value of another type is an error, because
// servers may accept it, such as variables in a text of JSON.
func ofQuery(body any) (r graphQL, err error) {
	fields, _ := body.(map[string]any)
	if fields["query"] == nil {
		return r, errors.New("its body has no query")
	}
	var query, variables, operation bool
	r.Query, query = fields["query"].(string)
	r.Variables, variables = fields["variables"].(map[string]any)
	r.Operation, operation = fields["operationName"].(string)
	switch {
	case !query:
		err = errors.New("its query must be a text")
	case !variables && fields["variables"] != nil:
		err = errors.New("its variables must be a JSON object")
	case !operation && fields["operationName"] != nil:
		err = errors.New("its operationName must be a text")
	}
	return r, err
}
