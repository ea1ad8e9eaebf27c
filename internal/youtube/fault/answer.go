package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quotabudget/internal/youtube/bounds"
)

// answer is what the body of an error says, in whichever of the upstream's shapes it came.
type answer struct {
	message string
	words   bool              // the message is the API's own, not a page's or a front end's
	reasons []reason          // the telling ones first
	oauth   string            // the one word of an OAuth error
	quota   map[string]string // metadata of the ErrorInfo that names the unit of a quota
	cut     bool              // JSON that ends too early
}

type reason struct{ word, domain string }

// errorBody is the JSON of an error. Every part of it may be missing, null or of another type.
type errorBody struct {
	Message string
	Errors  []struct{ Reason, Domain, Message string }
	Details []errorInfo
}

// errorInfo is a google.rpc.ErrorInfo, or another kind of detail, whose fields mean something else.
type errorInfo struct {
	Type           string `json:"@type"`
	Reason, Domain string
	Metadata       map[string]string
}

// googles reports whether the detail is an ErrorInfo of Google's own.
func (i errorInfo) googles() bool {
	return strings.HasSuffix(i.Type, "/google.rpc.ErrorInfo") &&
		(i.Domain == "googleapis.com" || strings.HasSuffix(i.Domain, ".googleapis.com"))
}

// metersUs reports whether the detail is of a quota of this API. Another API that this one calls
// may be out of quota, too.
func (i errorInfo) metersUs() bool {
	service := i.Metadata["service"]
	return i.Metadata["quota_unit"] != "" && (service == "" || service == "youtube.googleapis.com")
}

func parseAnswer(body []byte) answer {
	body = bytes.TrimSpace(body)
	if len(body) >= bounds.MaxError {
		return answer{message: fmt.Sprintf("the error is longer than %d bytes", bounds.MaxError)}
	}
	if len(body) == 0 || body[0] != '{' && body[0] != '[' {
		return answer{message: title(body)}
	}
	if !json.Valid(body) {
		return answer{cut: true}
	}
	if err := bounds.Check(body); err != nil {
		return answer{message: err.Error()}
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

// readEnvelope takes what it can from valid JSON: Unmarshal passes over parts of another type and
// reads the rest.
func readEnvelope(body []byte) answer {
	var e struct{ Error json.RawMessage }
	json.Unmarshal(body, &e)
	if len(e.Error) == 0 || e.Error[0] != '{' { // OAuth has {"error": "invalid_grant"}
		var word string
		json.Unmarshal(e.Error, &word)
		return answer{oauth: word}
	}
	var said errorBody
	json.Unmarshal(e.Error, &said)
	a := answer{message: said.Message, words: true}
	for _, info := range said.Details {
		if !info.googles() {
			continue
		}
		a.add(info.Reason, info.Domain)
		if a.quota == nil && info.metersUs() {
			a.quota = info.Metadata
		}
	}
	for _, item := range said.Errors {
		a.add(item.Reason, item.Domain)
		if a.message == "" {
			a.message = item.Message
		}
	}
	return a
}

func (a *answer) add(word, domain string) {
	if word != "" {
		a.reasons = append(a.reasons, reason{word, domain})
	}
}

// has reports whether the answer gives one of the reasons.
func (a answer) has(words ...string) bool {
	return slices.ContainsFunc(a.reasons, func(r reason) bool {
		return slices.Contains(words, r.word)
	})
}

// hasOnly reports whether the answer gives no reason but these: none of them, or none at all.
func (a answer) hasOnly(words ...string) bool {
	return !slices.ContainsFunc(a.reasons, func(r reason) bool {
		return !slices.Contains(words, r.word)
	})
}

// reason is the first of the answer's reasons, "" without any.
func (a answer) reason() string {
	if len(a.reasons) == 0 {
		return bounds.Plain(a.oauth)
	}
	return bounds.Plain(a.reasons[0].word)
}

var titleForm = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

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
