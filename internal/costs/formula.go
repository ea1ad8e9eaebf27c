package costs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// Bounds of an expression.
const (
	maxFormula      = 2000 // bytes
	maxFormulaShown = 100  // bytes in an error
	maxFormulaNodes = 300
)

// formula is an expression. After Bind it is immutable and may be shared.
//
// The language is github.com/expr-lang/expr without its slow parts: loops, patterns and variables.
// Names are checked at compile time. The contents of requests and responses are known only at
// evaluation. A missing path into JSON is an error, unless ?? follows it.
type formula struct {
	Text string // as decoded from YAML

	result   resultType
	compiled func() (*program, error) // compiles on the first call
}

// program is a compiled expression.
type program struct {
	code  *vm.Program
	names map[string]bool // names in the expression
	paths []string        // paths into JSON that must exist
	reads []string        // see valueError.Reads
}

// UnmarshalText keeps the text of an expression for Bind.
func (f *formula) UnmarshalText(text []byte) error {
	f.Text = string(text)
	return nil
}

// resultType is the type of an expression's result.
type resultType int

// Results of expressions. A text may also be a number, true or false.
const (
	resultNumber resultType = iota
	resultCondition
	resultText
)

// Bind sets the names that the expression may use, and the type of its result. The expression is
// compiled on its first use, which panics if it is invalid: see Check.
func (f *formula) Bind(scope scope, result resultType) {
	f.result = result
	f.compiled = sync.OnceValues(func() (*program, error) { return compile(f.Text, scope, result) })
}

// Check compiles the expression and returns what is wrong with it. It evaluates a constant number.
func (f *formula) Check() error {
	p, err := f.compiled()
	if err == nil && len(p.names) == 0 && f.result == resultNumber {
		_, err = f.Units(nil)
	}
	return err
}

func (f *formula) program() *program {
	p, err := f.compiled()
	if err != nil {
		panic(fmt.Sprintf("formula: %q: %v", f.Text, err))
	}
	return p
}

func compile(text string, scope scope, result resultType) (*program, error) {
	if len(text) > maxFormula {
		return nil, fmt.Errorf("an expression of %d bytes: must have at most %d", len(text),
			maxFormula)
	}
	check := &checker{scope: scope, names: map[string]bool{}, paths: map[string]bool{},
		reads: map[string]bool{}}
	as := []expr.Option{resultNumber: expr.AsFloat64(), resultCondition: expr.AsBool(),
		resultText: expr.AsAny()}[result]
	options := []expr.Option{expr.Function("distinct", distinct, new(func(any) float64)),
		expr.Env(scope.types()), expr.MaxNodes(maxFormulaNodes), expr.DisableAllBuiltins(),
		expr.Patch(check), as}
	for name, table := range scope.Tables {
		options = append(options, table.function(name))
	}
	if scope.Kind == scopeRequest || scope.Kind == scopeHold {
		options = append(options, queryFunction("graphql_points", points),
			queryFunction("graphql_operation", operation))
	}
	for _, name := range builtins() {
		options = append(options, expr.EnableBuiltin(name))
	}
	code, err := expr.Compile(text, options...)
	if check.err != nil {
		return nil, check.err
	}
	if err != nil {
		return nil, errors.New(firstLine(err))
	}
	// The library does not report the unknown names among the arguments of a function.
	validNames := slices.AppendSeq([]string{"distinct", "graphql_operation", "graphql_points"},
		maps.Keys(scope.types()))
	for _, name := range slices.Sorted(maps.Keys(check.names)) {
		if !slices.Contains(validNames, name) && scope.Tables[name].Rows == nil {
			return nil, fmt.Errorf("unknown name %s", name)
		}
	}
	return &program{code, check.names, slices.Sorted(maps.Keys(check.paths)),
		slices.Sorted(maps.Keys(check.reads))}, nil
}

// Uses reports whether the expression refers to one of the names.
func (f *formula) Uses(names ...string) bool {
	used := f.program().names
	return slices.ContainsFunc(names, func(name string) bool { return used[name] })
}

// Constant reports whether the result never changes.
func (f *formula) Constant() bool { return len(f.program().names) == 0 }

// missingError reports paths that an expression needs and the JSON lacks.
type missingError struct{ Paths []string }

// Error names the paths.
func (e *missingError) Error() string { return strings.Join(e.Paths, ", ") + " is missing" }

// valueError reports an expression whose result is not usable.
type valueError struct {
	Text string // of the expression
	// Reads lists the paths that the expression reads in JSON and in the query: body.max_tokens,
	// query.ids. It lacks paths inside the items of a list.
	Reads []string
	What  string
}

// Error returns a message that begins with the expression, for the author of the list.
func (e *valueError) Error() string {
	text := strings.Join(strings.Fields(e.Text), " ")
	if len(text) > maxFormulaShown {
		text = strings.ToValidUTF8(text[:maxFormulaShown], "") + "…"
	}
	return text + " " + e.What
}

func (f *formula) wrong(format string, args ...any) error {
	return &valueError{f.Text, f.program().reads, fmt.Sprintf(format, args...)}
}

// Units evaluates a number as units: whole, rounded up, from 0 to quota.MaxUnits. A fraction below
// a millionth of a unit is rounding noise and is not rounded up.
func (f *formula) Units(env variables) (int64, error) {
	value, err := f.Value(env)
	if err != nil {
		return 0, err
	}
	return f.Round(value)
}

// Round returns a value of the formula, or a sum of several, as units.
func (f *formula) Round(value float64) (int64, error) {
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return 0, f.wrong("is not a finite number")
	case value < 0:
		return 0, f.wrong("gives %g: units cannot be negative", value)
	}
	if value = math.Ceil(value - 1e-6); value > quota.MaxUnits {
		return 0, f.wrong("is %g: must be at most %d units", value, int64(quota.MaxUnits))
	}
	return int64(value), nil
}

// Value evaluates a number.
func (f *formula) Value(env variables) (float64, error) {
	result, err := f.run(env)
	if err != nil {
		return 0, err
	}
	value, ok := result.(float64)
	if !ok {
		return 0, f.wrong("is not a number")
	}
	return value, nil
}

// Holds evaluates a condition. A condition that cannot be evaluated is false.
func (f *formula) Holds(env variables) bool {
	result, err := f.run(env)
	holds, ok := result.(bool)
	return err == nil && ok && holds
}

// String evaluates a text. It returns "" if its path is missing, and an error if the value is not a
// text.
func (f *formula) String(env variables) (string, error) {
	result, err := f.run(env)
	wrong, _ := errors.AsType[*valueError](err)
	if _, missing := errors.AsType[*missingError](err); missing ||
		wrong != nil && wrong.What == noValue {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch result := result.(type) {
	case string:
		return result, nil
	case float64, int, bool:
		return fmt.Sprint(result), nil
	}
	return "", f.wrong("is not text")
}

const noValue = "has no value" // reason of a valueError

func (f *formula) run(env variables) (any, error) {
	program := f.program()
	result, err := expr.Run(program.code, map[string]any(env))
	if err == nil && result != nil {
		return result, nil
	}
	var missing []string
	for _, path := range program.paths {
		if value, _ := untrusted.Find(map[string]any(env), path); value == nil {
			missing = append(missing, path)
		}
	}
	switch {
	case len(missing) > 0:
		return nil, &missingError{missing}
	case err == nil:
		return nil, f.wrong(noValue)
	}
	if said, ok := errors.AsType[*requestError](err); ok {
		return nil, said
	}
	if unlisted, ok := errors.AsType[*rowError](err); ok {
		return nil, unlisted
	}
	return nil, f.wrong("cannot be computed: %s", firstLine(err))
}

// firstLine returns the library's message without the drawing below it.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
