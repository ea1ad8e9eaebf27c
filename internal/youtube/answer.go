package youtube

import (
	"bytes"
	"encoding/json"
	"html"
	"maps"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"quotabudget/internal/quota"
)

// answer is what the body of an error says, in whichever of the upstream's shapes it came.
type answer struct {
	message  string
	reasons  []reason          // the telling ones first
	metadata map[string]string // of ErrorInfo
	cut      bool              // JSON that ends too early
}

type reason struct{ word, domain string }

// envelope is the JSON of an error. Every part of it may be missing, null or of another type.
type envelope struct {
	Error json.RawMessage `json:"error"`
}

type errorBody struct {
	Message string      `json:"message"`
	Errors  []errorItem `json:"errors"`
	Details []errorItem `json:"details"`
}

type errorItem struct {
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Message  string            `json:"message"`
	Metadata map[string]string `json:"metadata"`
}

func parseAnswer(body []byte) answer {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' && body[0] != '[' {
		return answer{message: title(body)}
	}
	if !json.Valid(body) {
		return answer{cut: true}
	}
	if body[0] == '[' { // some front ends put the object into an array
		var list []json.RawMessage
		json.Unmarshal(body, &list)
		if len(list) == 0 {
			return answer{}
		}
		body = list[0]
	}
	return readEnvelope(body)
}

// readEnvelope takes what it can from valid JSON: Unmarshal passes over parts of another type and reads the rest.
func readEnvelope(body []byte) answer {
	var e envelope
	json.Unmarshal(body, &e)
	if len(e.Error) == 0 || e.Error[0] != '{' { // OAuth has {"error": "invalid_grant"}
		var word string
		if json.Unmarshal(e.Error, &word) != nil || word == "" {
			return answer{}
		}
		return answer{reasons: []reason{{word: word}}}
	}
	var said errorBody
	json.Unmarshal(e.Error, &said)
	a := answer{message: said.Message, metadata: map[string]string{}}
	for _, item := range append(said.Details, said.Errors...) {
		if item.Reason != "" {
			a.reasons = append(a.reasons, reason{item.Reason, item.Domain})
		}
		maps.Copy(a.metadata, item.Metadata)
		if a.message == "" {
			a.message = item.Message
		}
	}
	return a
}

// has reports whether the answer gives one of the reasons.
func (a answer) has(words ...string) bool {
	for _, r := range a.reasons {
		for _, w := range words {
			if r.word == w {
				return true
			}
		}
	}
	return false
}

// reason is the first of the answer's reasons, "" without any.
func (a answer) reason() string {
	if len(a.reasons) == 0 {
		return ""
	}
	return plain(a.reasons[0].word)
}

func (a answer) text() string { return plain(a.message) }

var (
	titleForm = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	tagForm   = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
)

// title is what a body that is not JSON says: the title of a page, or a line of text.
func title(body []byte) string {
	if m := titleForm.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	if bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	return string(body)
}

const maxMessage = 300

// plain takes the markup, the line breaks and what a terminal would act upon out of a text, and cuts it. A text that
// holds what looks like a key is dropped whole.
func plain(text string) string {
	text = html.UnescapeString(tagForm.ReplaceAllString(text, ""))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if quota.LooksSecret(text) {
		return ""
	}
	if runes := []rune(text); len(runes) > maxMessage {
		return strings.TrimSpace(string(runes[:maxMessage])) + "…"
	}
	return text
}
