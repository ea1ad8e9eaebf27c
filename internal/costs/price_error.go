package costs

import (
	"errors"
	"fmt"
	"strings"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// PriceError reports that a request is not sent, because its price cannot be computed. It is a
// quota.ErrUnpriced.
type PriceError struct {
	Method, Bucket string
	Err            error
}

// Error names the method and the problem of the request, for its sender: without the
// expressions of the list, and without values.
func (e *PriceError) Error() string {
	what := e.Err.Error()
	if missing, ok := e.Err.(*formula.MissingError); ok {
		what = inWords(missing.Paths) + " is missing"
	} else if unlisted, ok := e.Err.(*formula.RowError); ok {
		what = fmt.Sprintf("the price list has no %s for %q", unlisted.Table, words.Clip(unlisted.Key))
	} else if wrong, ok := e.Err.(*formula.ValueError); ok && len(wrong.Reads) > 0 {
		what = fmt.Sprintf("its price depends on %s, and with what is there it is no number from "+
			"0 to %s", inWords(wrong.Reads), words.Count(quota.MaxUnits))
	}
	return fmt.Sprintf("cannot price %s: %s", e.Method, what)
}

// Formula returns the failing expression for the author of the price list, or "" if the error has
// another cause.
func (e *PriceError) Formula() string {
	wrong, ok := errors.AsType[*formula.ValueError](e.Err)
	fact, _ := e.Err.(*factError)
	switch {
	case fact != nil:
		return fmt.Sprintf("%s: %v", fact.name, fact.err)
	case ok:
		return fmt.Sprintf("%s: %v", e.Bucket, wrong)
	}
	return ""
}

// factError is a fact of the list whose value in the request is not text.
type factError struct {
	name string
	err  error
}

// Error names neither the expression of the list nor its word for the fact.
func (e *factError) Error() string {
	return "what its price depends on is there in another form than it should be"
}

// inWords returns the inputs of a formula in words: max_tokens in the body.
func inWords(reads []string) string {
	var all []string
	for _, path := range reads {
		root, name, _ := strings.Cut(path, ".")
		all = append(all, name+" in the "+root)
	}
	return strings.Join(all, ", ")
}

// Unwrap returns the cause and quota.ErrUnpriced.
func (e *PriceError) Unwrap() []error { return []error{e.Err, quota.ErrUnpriced} }
