package quota

import (
	"fmt"
	"path"
	"slices"
)

// Allowance is what a caller may charge and hold. The zero Allowance allows everything. Patterns
// are those of path.Match.
type Allowance struct {
	Methods []string         // patterns of methods; none for all, and for calls without a method
	Models  []string         // patterns of models; none for all
	Most    map[string]int64 // maximum units of one call, by bucket or part of a bucket
}

// LabelAllowance is the Allowance of calls with a value of a label.
type LabelAllowance struct {
	Label, Value string
	Allowance
}

// LabelModel is the label that names a call's model if the request does not.
const LabelModel = "model"

// Check reports whether a call with these costs is allowed. Errors: ErrNotAllowed.
func (a Allowance) Check(method, model string, costs []Cost) error {
	matches := func(name string) func(string) bool {
		return func(pattern string) bool { ok, err := path.Match(pattern, name); return ok && err == nil }
	}
	switch {
	case len(a.Methods) > 0 && !slices.ContainsFunc(a.Methods, matches(method)):
		if method == "" {
			method = "a charge without a method"
		}
		return fmt.Errorf("%w: %s", ErrNotAllowed, method)
	case len(a.Models) > 0 && model != "" && !slices.ContainsFunc(a.Models, matches(model)):
		return fmt.Errorf("%w: model %s", ErrNotAllowed, model)
	}
	for _, c := range costs {
		limit, ok := a.Most[c.Bucket]
		if !ok {
			limit, ok = a.Most[WholeOf(c.Bucket)]
		}
		if units := max(c.Units, c.Most); ok && units > limit {
			return fmt.Errorf("%w: %d units of %s in one call, and at most %d are", ErrNotAllowed,
				units, c.Bucket, limit)
		}
	}
	return nil
}

// CheckPatterns reports a pattern that cannot be read.
func (a Allowance) CheckPatterns() error {
	for _, pattern := range slices.Concat(a.Methods, a.Models) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return malformed("%q is not a pattern such as openai.chat.*", pattern)
		}
	}
	return nil
}

// allowed reports why the token or the labels of the call do not allow it. Draws were allowed when
// their units were held.
func (b *Budget) allowed(call Call, costs []Cost, labels Labels) error {
	if call.Reservation != "" {
		return nil
	}
	model := call.Model
	if model == "" {
		model = labels[LabelModel]
	}
	for _, allowance := range b.Allow {
		if labels[allowance.Label] != allowance.Value {
			continue
		}
		if err := allowance.Check(call.Method, model, costs); err != nil {
			return fmt.Errorf("%s=%s: %w", allowance.Label, allowance.Value, err)
		}
	}
	return call.Allow.Check(call.Method, model, costs)
}
