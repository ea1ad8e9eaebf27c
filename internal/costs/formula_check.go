package costs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// checker rewrites an expression so that a missing path is nil, collects the names that it uses,
// and refuses slow constructs. It visits the tree from the leaves.
type checker struct {
	scope scope
	names map[string]bool
	paths map[string]bool // paths into JSON that must exist
	reads map[string]bool // paths into a request's body, and query.name
	err   error
}

func (c *checker) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// Visit implements ast.Visitor.
func (c *checker) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		c.names[n.Value] = true
	case *ast.MemberNode:
		c.member(node, n)
	case *ast.CallNode:
		c.call(n)
	case *ast.BuiltinNode:
		c.builtin(node, n)
	case *ast.PredicateNode:
		c.predicate(n)
	case *ast.BinaryNode:
		c.binary(n)
	case *ast.VariableDeclaratorNode:
		c.refuse("let is not available in a price list")
	}
}

// member makes a step of a path optional.
func (c *checker) member(node *ast.Node, n *ast.MemberNode) {
	n.Optional = true
	if path, ok := pathOf(n); ok {
		delete(c.paths, path[:strings.LastIndexByte(path, '.')])
		c.paths[path] = true
		c.reads[path] = true
	}
	object, name := n.Node, n.Property
	if query, ok := object.(*ast.IdentifierNode); ok && query.Value == "query" {
		if name, ok := name.(*ast.StringNode); ok {
			c.reads["query."+name.Value] = true
		}
	}
	ast.Patch(node, &ast.ChainNode{Node: n})
}

// call records the paths that functions read in JSON. If count finds no resources because even the
// path to them does not exist, the path is missing like any other.
func (c *checker) call(n *ast.CallNode) {
	name, _ := n.Callee.(*ast.IdentifierNode)
	if name != nil && strings.HasPrefix(name.Value, "graphql_") {
		for _, key := range []string{"query", "variables", "operationName"} {
			c.reads["body."+key] = true
		}
	}
	if name != nil && c.scope.Tables[name.Value].Rows != nil {
		if len(n.Arguments) == 2 {
			c.columns(name.Value, n.Arguments[1])
		}
		n.Arguments = append(n.Arguments, &ast.IdentifierNode{Value: dayVariable})
	}
	path, ok := countOf(n)
	if !ok {
		return
	}
	if err := checkPath(path); err != nil {
		c.refuse("%v", err)
	}
	c.reads["body."+path] = true
	if before, ok := counted(path); ok && c.scope.Kind == scopeAnswer {
		c.paths["answer."+before] = true
	}
}

// countOf returns the path in count("…").
func countOf(n ast.Node) (path string, ok bool) {
	call, _ := n.(*ast.CallNode)
	if call == nil || len(call.Arguments) != 1 {
		return "", false
	}
	name, _ := call.Callee.(*ast.IdentifierNode)
	text, _ := call.Arguments[0].(*ast.StringNode)
	if name == nil || name.Value != "count" || text == nil {
		return "", false
	}
	return text.Value, true
}

// counted returns the part of a path that must exist to count its resources: the part before the
// first *.
func counted(path string) (before string, ok bool) {
	before, _, _ = strings.Cut("."+path+".", ".*.")
	before = strings.Trim(before, ".")
	return before, before != ""
}

// checkPath returns an error for a path that can never match: a JSONPath, a JSON Pointer, or a path
// with an empty step.
func checkPath(path string) error {
	switch {
	case strings.HasPrefix(path, "$") || strings.ContainsAny(path, "[]"):
		return fmt.Errorf("path %q can never match: write indexes as steps, data.0.id or data.*.id",
			path)
	case strings.HasPrefix(path, "/"):
		return fmt.Errorf("path %q can never match: separate steps with dots, data.0.id", path)
	case slices.Contains(strings.Split(path, "."), ""):
		return fmt.Errorf("path %q can never match: it has an empty step", path)
	}
	return nil
}

// pathOf writes a path into JSON with dots: usage.input_tokens.
func pathOf(node ast.Node) (path string, ok bool) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return n.Value, roots[n.Value]
	case *ast.ChainNode:
		return pathOf(n.Node)
	case *ast.MemberNode:
		head, ok := pathOf(n.Node)
		switch step := n.Property.(type) {
		case *ast.StringNode:
			return head + "." + step.Value, ok
		case *ast.IntegerNode:
			return fmt.Sprintf("%s.%d", head, step.Value), ok
		}
	}
	return "", false
}

// builtin makes len(body) the length of the body in bytes.
func (c *checker) builtin(node *ast.Node, n *ast.BuiltinNode) {
	if n.Name != "len" || len(n.Arguments) != 1 {
		return
	}
	root, ok := n.Arguments[0].(*ast.IdentifierNode)
	if ok && sizes[root.Value] != "" {
		delete(c.names, root.Value) // the parsed body is not needed for it
		c.names[sizes[root.Value]] = true
		ast.Patch(node, &ast.IdentifierNode{Value: sizes[root.Value]})
	}
}

// predicate checks a condition on the items of a list. It may use only the item, so that the time
// is proportional to the list.
func (c *checker) predicate(n *ast.PredicateNode) {
	outer := append(slices.Concat(c.scope.Facts, c.scope.Numbers), dayVariable)
	ast.Walk(&n.Node, visit(func(node *ast.Node) {
		name, ok := (*node).(*ast.IdentifierNode)
		if ok && !slices.Contains(outer, name.Value) && c.scope.Tables[name.Value].Rows == nil {
			c.refuse("%s is used inside a predicate: use the item (#) alone there", name.Value)
		}
	}))
}

type visit func(*ast.Node)

func (v visit) Visit(node *ast.Node) { v(node) }

// binary allows the left side of ?? to be missing.
func (c *checker) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "matches", "..", "**", "^":
		c.refuse("the operator %s is not available in a price list", n.Operator)
	case "??":
		ast.Walk(&n.Left, visit(func(node *ast.Node) {
			if path, ok := pathOf(*node); ok {
				delete(c.paths, path)
			}
			if path, ok := countOf(*node); ok {
				before, _ := counted(path)
				delete(c.paths, "answer."+before)
			}
		}))
	}
}
