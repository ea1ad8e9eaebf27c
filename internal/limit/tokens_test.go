package limit

import (
	"strings"
	"testing"
)

const token = "0123456789abcdef-nightly"

// Every problem has its line number, and no token is repeated.
func TestParseTokens(t *testing.T) {
	t.Parallel()
	const short = ": its token is shorter than 16 characters: a line has a name, then a token"
	for text, want := range map[string]string{
		"":                                    "it has no token",
		"# nobody\n":                          "it has no token",
		"a b " + token:                        "line 1" + short,
		"a " + token + " wrote":               "line 1: write a name and a token",
		"a " + token + " charge=1":            "line 1: write a name and a token",
		"a " + token + " bucket=A":            "line 1: bucket= needs",
		"a " + token + " label=team":          "line 1: label= needs",
		"a " + token + " method=[":            "line 1: method= needs",
		"a " + token + " model=":              "line 1: model= needs",
		"a " + token + " most=money":          "line 1: most= needs",
		"\na short":                           "line 2" + short,
		token + " nightly":                    "line 1" + short,
		"a tokentokentoken\u00e9":             "line 1: its token has characters",
		"-a " + token:                         "line 1: a name has",
		"a=b " + token:                        "line 1: a name has",
		"a " + token + "\na " + token + "2":   "line 2: a has a line already",
		"a " + token + "\n#\nb " + token:      "line 3: b has the same token as a",
		"a x\nb y":                            "line 1" + short + "\ntokens: line 2: ",
		strings.Repeat("a", 65) + " " + token: "line 1: a name has",
		"nightly " + token + " by-hand":       "line 1: write a name",
	} {
		for _, named := range []bool{true, false} {
			_, err := ParseTokens("tokens", text, named)
			if err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), token) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		}
	}
	if _, err := ParseTokens("tokens", token+"\n", true); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("a token without a name: %v", err)
	}
	for text, want := range map[string]string{
		"x\n":                           "line 1" + short,
		token + "\n" + token:            "line 2: it has the same token as another line",
		"a " + token + "\n" + token:     "line 2: it has the same token as a",
		token + "\n\na " + token + "\n": "line 3: a has the same token as another line",
	} {
		if _, err := ParseTokens("tokens", text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
