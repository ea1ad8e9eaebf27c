package limit

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/quota"
)

// Tokens are the programs and people that may use a server, each with its own token. A nil Tokens
// is empty.
type Tokens struct{ all []TokenHolder }

// TokenHolder is a line of a token file.
type TokenHolder struct {
	Name    string       // "" if the line has only a token
	Manual  bool         // the caller is a person, and may use the headroom
	Scopes  []string     // ScopeCharge, ScopeRead, ScopeAdmin; nil if the line has none
	Buckets []string     // the only buckets the caller may charge; nil for all
	Labels  quota.Labels // added to every charge of the caller
	Allow   quota.Allowance

	sum [sha256.Size]byte // hash of the token
}

// LabelsOf returns the labels of the caller's charges: the labels of its line, and its name.
func (h TokenHolder) LabelsOf() quota.Labels {
	if h.Name == "" {
		return h.Labels
	}
	return h.Labels.With(quota.Labels{quota.LabelCaller: h.Name})
}

// The scopes of a token. Admin includes the other two.
const (
	ScopeCharge = "charge"
	ScopeRead   = "read"
	ScopeAdmin  = "admin"
)

// May reports whether the caller has a scope. A line without scopes has the scope initial.
func (h TokenHolder) May(scope, initial string) bool {
	if len(h.Scopes) == 0 {
		return scope == initial
	}
	return slices.Contains(h.Scopes, scope) || slices.Contains(h.Scopes, ScopeAdmin)
}

// MayCharge reports whether the caller may charge a bucket, or a part of one.
func (h TokenHolder) MayCharge(bucket string) bool {
	return len(h.Buckets) == 0 || slices.Contains(h.Buckets, bucket) ||
		slices.Contains(h.Buckets, quota.WholeOf(bucket))
}

// Buckets returns the buckets that the lines name.
func (c *Tokens) Buckets() (names []string) {
	for _, h := range c.all {
		names = slices.Concat(names, h.Buckets, slices.Sorted(maps.Keys(h.Allow.Most)))
	}
	return names
}

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	tokenForm = regexp.MustCompile(`^[!-~]+$`)
)

// minToken is the minimum length of a token: shorter ones can be guessed.
const minToken = 16

// TokenAdvice explains how to write a line.
const TokenAdvice = "a line has a name and a token: openssl rand -hex 24 makes one"

var errLine = errors.New("write a name and a token, separated by a space, then manual for people, " +
	"scopes (charge, read, admin), bucket=NAME, label=NAME=VALUE, method=PATTERN, " +
	"model=PATTERN and most=BUCKET=UNITS")

// ParseTokens reads the names and tokens of callers, a line for each: name, space, token, and words
// about the caller (see TokenHolder): manual, scopes, bucket=NAME, label=NAME=VALUE,
// method=PATTERN, model=PATTERN, most=BUCKET=UNITS. It skips empty lines and comments (#). If the
// file names its callers, every line has a name; otherwise a line may have only a token. It reports
// every problem by file and line, and repeats no token.
func ParseTokens(file, text string, named bool) (*Tokens, error) {
	var callers Tokens
	var problems []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) == 1 && !named {
			words = []string{"", words[0]}
		}
		if err := callers.add(words); err != nil {
			problems = append(problems, fmt.Errorf("%s: line %d: %w", file, number, err))
		}
	}
	if len(problems) == 0 && len(callers.all) == 0 {
		problems = append(problems, fmt.Errorf("%s: it has no token: write a line for "+
			"each caller, with its name and its token", file))
	}
	return &callers, errors.Join(problems...)
}

func (c *Tokens) add(words []string) error {
	if len(words) < 2 {
		return errLine
	}
	name, token := words[0], words[1]
	holder := TokenHolder{Name: name, sum: sha256.Sum256([]byte(token))}
	switch { // a name may be shown once it cannot be a misplaced token
	case name != "" && !nameForm.MatchString(name):
		return errors.New("a name has up to 64 letters, digits, . _ and -, and comes before its " +
			"token")
	case len(token) < minToken:
		return fmt.Errorf("its token is shorter than %d characters: a line has a name, then a "+
			"token", minToken)
	case !tokenForm.MatchString(token):
		return errors.New("its token has characters that are not printable ASCII")
	}
	for _, word := range words[2:] {
		if err := holder.set(word); err != nil {
			return err
		}
	}
	for _, other := range c.all {
		if name != "" && other.Name == name {
			return fmt.Errorf("%s has a line already", name)
		}
		if other.sum == holder.sum {
			return fmt.Errorf("%s has the same token as %s", cmp.Or(name, "it"),
				cmp.Or(other.Name, "another line"))
		}
	}
	c.all = append(c.all, holder)
	return nil
}

// set applies a word of a line. Errors never repeat a word, because it may be a token.
func (h *TokenHolder) set(word string) error {
	const pattern = "a pattern, such as openai.chat.* or gpt-5-mini*"
	key, value, _ := strings.Cut(word, "=")
	valid, form := true, ""
	switch {
	case word == "manual":
		h.Manual = true
	case word == ScopeCharge, word == ScopeRead, word == ScopeAdmin:
		h.Scopes = append(h.Scopes, word)
	case key == "bucket":
		h.Buckets = append(h.Buckets, value)
		valid, form = quota.CheckBucket(value) == nil, "the name of a bucket"
	case key == "label":
		name, value, _ := strings.Cut(value, "=")
		h.Labels = h.Labels.With(quota.Labels{name: value})
		valid, form = value != "" && h.Labels.Check() == nil, "NAME=VALUE, such as label=team=ci"
	case key == "method":
		h.Allow.Methods = append(h.Allow.Methods, value)
		valid, form = h.Allow.CheckPatterns() == nil, pattern
	case key == "model":
		h.Allow.Models = append(h.Allow.Models, value)
		valid, form = h.Allow.CheckPatterns() == nil, pattern
	case key == "most":
		bucket, text, _ := strings.Cut(value, "=")
		units, err := strconv.ParseInt(text, 10, 64)
		if h.Allow.Most == nil {
			h.Allow.Most = map[string]int64{}
		}
		h.Allow.Most[bucket] = units
		valid = err == nil && units >= 0 && quota.CheckBucket(bucket) == nil
		form = "BUCKET=UNITS, such as most=money=200000"
	default:
		return errLine
	}
	if !valid {
		return fmt.Errorf("%s= needs %s", key, form)
	}
	return nil
}

// Of returns the caller with one of the tokens. A wrong token takes as long as a right one.
func (c *Tokens) Of(tokens ...string) (holder TokenHolder, ok bool) {
	if c == nil {
		return TokenHolder{}, false
	}
	for _, token := range tokens {
		sum := sha256.Sum256([]byte(token))
		for _, other := range c.all {
			if subtle.ConstantTimeCompare(sum[:], other.sum[:]) == 1 {
				holder, ok = other, true
			}
		}
	}
	return holder, ok
}

// SentTokens returns the possible tokens in an Authorization header: after Bearer, after token
// (GitHub's libraries), or as the password or the user name of Basic.
func SentTokens(authorization string) []string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	switch token = strings.TrimSpace(token); strings.ToLower(scheme) {
	case "bearer", "token":
		return []string{token}
	case "basic":
		plain, err := base64.StdEncoding.DecodeString(token)
		if user, password, ok := strings.Cut(string(plain), ":"); err == nil && ok {
			return []string{password, user}
		}
	}
	return nil
}
