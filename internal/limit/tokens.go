package limit

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Tokens are the programs and people that may use a server, each with a token of its own. A nil
// Tokens has none.
type Tokens struct{ all []TokenHolder }

// TokenHolder is a line of a token file.
type TokenHolder struct {
	Name   string // "" where the line has only a token
	Manual bool   // the caller is a person, who may use the headroom

	sum [sha256.Size]byte // hash of the token
}

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	tokenForm = regexp.MustCompile(`^[!-~]+$`)
)

// minToken is the least length of a token: shorter ones can be guessed.
const minToken = 16

// TokenAdvice says how to write a line.
const TokenAdvice = "a line has a name and a token: openssl rand -hex 24 makes one"

// ParseTokens reads the names and tokens of callers, a line for each: name, space, token, and the
// word manual for people, who may use the headroom. It skips empty lines and comments (#). A file
// whose callers are named has a name in every line; otherwise a line may have a token alone. It
// reports every problem by file and line, and repeats no token.
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
	manual := len(words) == 3 && words[2] == "manual"
	if len(words) != 2 && !manual {
		return errors.New("write a name and a token, separated by a space, and manual for people")
	}
	name, token := words[0], words[1]
	switch { // a name may be shown once it cannot be a token in the wrong place
	case name != "" && !nameForm.MatchString(name):
		return errors.New("a name has up to 64 letters, digits, . _ and -, and comes before its " +
			"token")
	case len(token) < minToken:
		return fmt.Errorf("its token is shorter than %d characters: a line has a name, then a "+
			"token", minToken)
	case !tokenForm.MatchString(token):
		return errors.New("its token has characters that are not printable ASCII")
	}
	sum := sha256.Sum256([]byte(token))
	for _, other := range c.all {
		if name != "" && other.Name == name {
			return fmt.Errorf("%s has a line already", name)
		}
		if other.sum == sum {
			return fmt.Errorf("%s has the same token as %s", cmp.Or(name, "it"),
				cmp.Or(other.Name, "another line"))
		}
	}
	c.all = append(c.all, TokenHolder{name, manual, sum})
	return nil
}

// Of returns the caller that has one of the tokens. A wrong token takes as long as a right one.
func (c *Tokens) Of(tokens ...string) (found TokenHolder, ok bool) {
	if c == nil {
		return TokenHolder{}, false
	}
	for _, token := range tokens {
		sum := sha256.Sum256([]byte(token))
		for _, known := range c.all {
			if subtle.ConstantTimeCompare(sum[:], known.sum[:]) == 1 {
				found, ok = known, true
			}
		}
	}
	return found, ok
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
