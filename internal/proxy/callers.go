package proxy

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Callers are the programs that may use the proxy, each known by a token of its own.
type Callers struct{ all []caller }

type caller struct {
	name   string
	sum    [sha256.Size]byte // of its token
	manual bool              // it is a person, who may use the headroom
}

var (
	callerForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	tokenForm  = regexp.MustCompile(`^[!-~]+$`)
)

// leastToken is how long a token must be: shorter ones can be guessed.
const leastToken = 16

// ParseCallers reads the names and tokens of callers, a line for each: name, space, token, and the
// word manual for people, who may use the headroom. It skips empty lines and comments (#). It
// reports all that is wrong, by line, and repeats no token.
func ParseCallers(text string) (*Callers, error) {
	var callers Callers
	var problems []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := callers.add(words); err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", number, err))
		}
	}
	if len(problems) == 0 && len(callers.all) == 0 {
		problems = append(problems, errors.New("it has no callers: write a line for each, "+
			"with its name and its token"))
	}
	return &callers, errors.Join(problems...)
}

func (c *Callers) add(words []string) error {
	manual := len(words) == 3 && words[2] == "manual"
	if len(words) != 2 && !manual {
		return errors.New("write a name and a token, separated by a space, and manual for people")
	}
	name, token := words[0], words[1]
	switch { // a name may be shown once it cannot be a token in the wrong place
	case !callerForm.MatchString(name):
		return errors.New("a name has up to 64 letters, digits, . _ and -, and comes before its " +
			"token")
	case len(token) < leastToken:
		return fmt.Errorf("its token is shorter than %d characters: a line has a name, then a "+
			"token", leastToken)
	case !tokenForm.MatchString(token):
		return errors.New("its token has characters that are not printable ASCII")
	}
	sum := sha256.Sum256([]byte(token))
	for _, other := range c.all {
		if other.name == name {
			return fmt.Errorf("%s has a line already", name)
		}
		if other.sum == sum {
			return fmt.Errorf("%s has the same token as %s", name, other.name)
		}
	}
	c.all = append(c.all, caller{name, sum, manual})
	return nil
}

// of is the caller that has the token, the zero value for none. It takes as long for a wrong token
// as for a right one.
func (c *Callers) of(token string) (found caller) {
	sum := sha256.Sum256([]byte(token))
	for _, known := range c.all {
		if subtle.ConstantTimeCompare(sum[:], known.sum[:]) == 1 {
			found = known
		}
	}
	return found
}

// checkWord refuses a request that does not know the word of a proxy that is for one command: other
// users of this machine can reach its port.
func (x *exchange) checkWord() error {
	word := x.proxy.word
	if word == "" {
		return nil
	}
	given, _, _ := strings.Cut(strings.TrimPrefix(x.r.URL.EscapedPath(), "/"), "/")
	if subtle.ConstantTimeCompare([]byte(given), []byte(word)) != 1 {
		return refusef(http.StatusForbidden, "callerUnknown", "caller is not known",
			"this proxy is for the command that it was started with: send requests to the whole "+
				"of $QUOTA_PROXY, which ends with a word of its own")
	}
	x.word = "/" + word
	x.takeOff(x.word)
	x.path = x.r.URL.EscapedPath()
	return nil
}

// callerByKey is who sent a token in place of the API key.
func (x *exchange) callerByKey() caller {
	prefix := x.up.table().Credential.Prefix
	var given []string
	for _, name := range x.up.secretHeaders() {
		given = append(given, strings.TrimPrefix(x.r.Header.Get(name), prefix))
	}
	query := x.r.URL.Query()
	for _, name := range x.up.keyParams() {
		given = append(given, query.Get(name))
	}
	return x.proxy.Callers.of(cmp.Or(given...))
}

// identify finds who asks, if callers must be known. A token comes in a header of its own, or in
// place of the API key or the OAuth token that a program knows how to send.
func (x *exchange) identify() error {
	callers, r := x.proxy.Callers, x.r
	if callers == nil {
		return nil
	}
	var bearer caller
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		bearer = callers.of(strings.TrimSpace(token))
	}
	x.ownToken = bearer.name != "" // the upstream never sees it, whatever else the caller sends
	if token := r.Header.Get(TokenHeader); token != "" {
		x.caller = callers.of(token)
	} else {
		x.caller = cmp.Or(bearer, x.callerByKey())
	}
	if x.caller.name != "" {
		return nil
	}
	return refusef(http.StatusUnauthorized, "callerUnknown", "caller is not known",
		"send the token that this proxy gave you as %s: TOKEN, as Authorization: Bearer TOKEN, "+
			"or as your API key", TokenHeader).
		with("Www-Authenticate", `Bearer realm="quotactl proxy"`)
}
