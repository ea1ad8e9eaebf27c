// Package untrusted reads JSON from outside within bounds, and extracts plain text from messages.
package untrusted

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	_, err = Decode(data, client)
	return data, err
}

// Unmarshal decodes JSON into v. A key that appears twice in one object is an error, because the
// sender may have meant the other value, and so is one that v does not have in this spelling: a
// Count in place of count would be one call.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// Decode decodes JSON. Values that follow one another, such as one a line, are a list of them. It
// returns an Unusable for JSON beyond the bounds, or with a key twice in one object, whose meaning
// depends on the reader, and io.ErrUnexpectedEOF for anything that is not JSON.
func Decode(data []byte, within Bounds) (any, error) {
	in := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowInvalidUTF8(true))
	d := decoder{in: in, within: within}
	var all []any
	for {
		value, err := d.value()
		switch {
		case err == io.EOF && len(all) == 1:
			return all[0], nil
		case err == io.EOF && len(all) > 1:
			return all, nil
		case errors.Is(err, jsontext.ErrDuplicateName):
			at, _ := errors.AsType[*jsontext.SyntacticError](err)
			return nil, &Unusable{pathOf(at.JSONPointer), "is there twice"}
		}
		if unusable, ok := err.(*Unusable); ok {
			return nil, unusable
		}
		if err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		all = append(all, value)
	}
}

// pathOf writes a JSON Pointer with dots.
func pathOf(pointer jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(pointer), "/"), "/", ".")
}

type decoder struct {
	in     *jsontext.Decoder
	within Bounds
	values int // so far
}

// unusable reports what is wrong at the current value.
func (d *decoder) unusable(format string, args ...any) error {
	return &Unusable{pathOf(d.in.StackPointer()), fmt.Sprintf(format, args...)}
}

func (d *decoder) value() (any, error) {
	token, err := d.in.ReadToken()
	if err != nil {
		return nil, err
	}
	d.values++
	switch {
	case d.values > d.within.Values:
		return nil, d.unusable("is where it has more than %d values", d.within.Values)
	case d.in.StackDepth() > d.within.Depth:
		return nil, d.unusable("is nested more than %d deep", d.within.Depth)
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		return d.object()
	case jsontext.KindBeginArray:
		return d.list()
	case jsontext.KindString:
		return d.text(token)
	case jsontext.KindNumber:
		number, _ := token.Float() // the nearest one, of a number that is too large
		return number, nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return token.Bool(), nil
	}
	return nil, nil
}

func (d *decoder) object() (any, error) {
	all := map[string]any{}
	for d.in.PeekKind() != jsontext.KindEndObject {
		token, err := d.in.ReadToken()
		if err != nil {
			return nil, err
		}
		key, err := d.text(token)
		if err != nil {
			return nil, err
		}
		if all[key], err = d.value(); err != nil {
			return nil, err
		}
	}
	_, err := d.in.ReadToken()
	return all, err
}

func (d *decoder) list() (any, error) {
	all := []any{}
	for d.in.PeekKind() != jsontext.KindEndArray {
		if len(all) == d.within.Items {
			return nil, d.unusable("has more than %d items", d.within.Items)
		}
		value, err := d.value()
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	_, err := d.in.ReadToken()
	return all, err
}

func (d *decoder) text(token jsontext.Token) (string, error) {
	text := token.String()
	if len(text) > d.within.Text {
		return "", d.unusable("is %d bytes long, %d at most", len(text), d.within.Text)
	}
	return text, nil
}
