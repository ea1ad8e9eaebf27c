// Package untrusted reads JSON from outside within bounds, finds values in it by path, and extracts
// plain text from messages.
package untrusted

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotabudget/internal/quota"
)

// MaxError is the maximum size in bytes of a response that is not a success; the rest is dropped.
const MaxError = 1 << 20

// maxAnswer is the maximum size in bytes of a successful response, unpacked.
const maxAnswer = 16 << 20

// Bounds limits JSON.
type Bounds struct {
	Values int // in all
	Depth  int // nested objects and lists
	Items  int // in a list
	Text   int // bytes of a text
}

// client is far above what an upstream documents (descriptions of 5,000 bytes, tags of 500
// characters in all, pages with 5,000 values) and far below what would hurt.
var client = Bounds{Values: 100_000, Depth: 64, Items: 1000, Text: 64 << 10}

// Unusable is a response that is too large or ambiguous. Asking again would not help.
type Unusable struct {
	Path    string // items.3.snippet.title
	Problem string
}

func (u *Unusable) Error() string {
	return "the answer cannot be used: " + cmp.Or(Plain(u.Path), "it") + " " + u.Problem
}

// Read reads the body of a response, and checks the JSON of a success. It cuts an error that is too
// long.
func Read(success bool, body io.Reader) ([]byte, error) {
	if !success {
		return io.ReadAll(io.LimitReader(body, MaxError))
	}
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxAnswer:
		return nil, &Unusable{"", fmt.Sprintf("is longer than %d bytes", maxAnswer)}
	}
	return data, client.check(reading(data))
}

// Unmarshal decodes JSON into v. It returns an error if a key appears twice in one object, because
// the sender may have meant the other value, or if v does not have it in this spelling. Otherwise a
// key such as Count would be ignored, and the count would be its default.
//
// Errors name the path of the value. They do not contain texts of the library, which change between
// versions.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	syntax, malformed := errors.AsType[*jsontext.SyntacticError](err)
	meaning, mistyped := errors.AsType[*json.SemanticError](err)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s appears twice", pathOf(syntax.JSONPointer))
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("%s: no such key", pathOf(meaning.JSONPointer))
	case malformed:
		before := data[:min(int64(len(data)), syntax.ByteOffset)]
		return fmt.Errorf("cannot parse the JSON at line %d, byte %d",
			1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
	case mistyped:
		return fmt.Errorf("%s: wrong type, or out of range",
			cmp.Or(pathOf(meaning.JSONPointer), "body"))
	}
	return err
}

// Decode decodes JSON. Values that follow one another, such as one a line, are a list of them. It
// returns an Unusable for JSON beyond the bounds, or with a key twice in one object, whose meaning
// depends on the reader, and io.ErrUnexpectedEOF for anything that is not JSON.
func Decode(data []byte, within Bounds) (any, error) {
	if err := within.check(reading(data)); err != nil {
		return nil, err
	}
	in := reading(data)
	var all []any
	for {
		var value any
		err := json.UnmarshalDecode(in, &value)
		switch {
		case err == io.EOF && len(all) == 1:
			return all[0], nil
		case err == io.EOF && len(all) > 1:
			return all, nil
		case err != nil:
			return nil, io.ErrUnexpectedEOF
		}
		all = append(all, value)
	}
}

func reading(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowInvalidUTF8(true))
}

// check reads the JSON without storing it, and returns an error if it is beyond the bounds.
func (b Bounds) check(in *jsontext.Decoder) error {
	values := 0
	for {
		token, err := in.ReadToken()
		var problem string
		switch kind := token.Kind(); {
		case errors.Is(err, jsontext.ErrDuplicateName):
			at, _ := errors.AsType[*jsontext.SyntacticError](err)
			return &Unusable{pathOf(at.JSONPointer), "appears twice"}
		case err == io.EOF && values > 0:
			return nil
		case err != nil:
			return io.ErrUnexpectedEOF
		case in.StackDepth() > b.Depth:
			problem = fmt.Sprintf("is nested more than %d deep", b.Depth)
		case kind == jsontext.KindString && len(token.String()) > b.Text:
			problem = fmt.Sprintf("is %d bytes long, %d at most", len(token.String()), b.Text)
		case kind != jsontext.KindEndObject && kind != jsontext.KindEndArray:
			problem = b.count(in, kind, &values)
		}
		if problem != "" {
			return &Unusable{pathOf(in.StackPointer()), problem}
		}
	}
}

// count counts a value, and returns what is wrong with the numbers.
func (b Bounds) count(in *jsontext.Decoder, kind jsontext.Kind, values *int) string {
	depth := in.StackDepth()
	if kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
		depth-- // the value is in the object or list around it
	}
	around, n := in.StackIndex(depth)
	if around == jsontext.KindBeginArray && n > int64(b.Items) {
		return fmt.Sprintf("is in a list of more than %d items", b.Items)
	}
	if around != jsontext.KindBeginObject || n%2 == 0 { // not a key
		*values++
	}
	if *values > b.Values {
		return fmt.Sprintf("is past the maximum of %d values", b.Values)
	}
	return ""
}

// pathOf writes a JSON Pointer with dots.
func pathOf(pointer jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(pointer), "/"), "/", ".")
}

// Fetch sends a request and returns the response, with the first max bytes of its body. It follows
// no redirect, which could lead to another host, and an error does not contain the URL, which may
// hold a secret. With an error it returns the part of the body that was read. The client's timeout
// includes the body.
func Fetch(client http.Client, r *http.Request, max int64) (*http.Response, []byte, error) {
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	response, err := client.Do(r)
	if about, ok := errors.AsType[*url.Error](err); ok {
		err = about.Err
	}
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, max))
	return response, body, err
}

var tagForm = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

const maxMessage = 300

// Plain returns a text in one line of at most 300 characters, without markup and control codes.
// It drops a text that contains something like a key.
func Plain(text string) string {
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
