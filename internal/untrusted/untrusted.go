// Package untrusted reads the upstream's responses within bounds, and extracts plain text from them.
package untrusted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of a response. Each is far above what the upstream documents (titles of 100 characters,
// descriptions of 5,000 bytes, tags of 500 characters in all) and far below what would hurt.
const (
	maxAnswer = 16 << 20 // bytes of a successful response, unpacked
	MaxError  = 1 << 20  // bytes of any other response; the rest is dropped
	maxValues = 100_000  // values in a response; a page of videos has about 5,000
	maxDepth  = 64       // nested objects and lists
	maxItems  = 1000     // in a list
	maxText   = 4 << 10  // bytes of a title, a name, a tag, an ID, a token
	maxProse  = 64 << 10 // bytes of a description, and of fields we do not read
)

// Unusable is a response that is too large or ambiguous. Asking again would not help.
type Unusable struct {
	Path    string // items[3].snippet.title
	Problem string
}

func (u *Unusable) Error() string {
	path := Plain(strings.TrimPrefix(u.Path, "."))
	return "the answer cannot be used: " + cmp.Or(path, "it") + " " + u.Problem
}

// Read reads the body of a response. It cuts an error that is too long.
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
	return data, Check(data)
}

// Check returns an Unusable for JSON with a value that is too long, too many values, too deep a
// nesting, or a repeated key, whose meaning depends on the parser. It only parses as much as it
// needs to find the values: the JSON decoder rejects other errors.
func Check(data []byte) error {
	c := checker{data: data, folded: map[string]string{}}
	return c.value("", 0)
}

type checker struct {
	data   []byte
	at     int // the next byte
	values int
	folded map[string]string // keys as encoding/json compares them
}

// errCut is the error for invalid JSON, which most often ends too early.
var errCut = io.ErrUnexpectedEOF

// next returns the next byte that is not blank, or 0 at the end.
func (c *checker) next() byte {
	for ; c.at < len(c.data); c.at++ {
		if b := c.data[c.at]; b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b
		}
	}
	return 0
}

// pass skips the next byte if it is b, and reports whether it did.
func (c *checker) pass(b byte) bool {
	if c.next() != b {
		return false
	}
	c.at++
	return true
}

// value checks the next value, which has the given key and depth.
func (c *checker) value(key string, depth int) error {
	if c.values++; c.values > maxValues {
		return &Unusable{"", fmt.Sprintf("is where it has more than %d values", maxValues)}
	}
	next := c.next()
	nested := next == '{' || next == '['
	switch {
	case nested && depth == maxDepth:
		return &Unusable{"", fmt.Sprintf("is nested more than %d deep", maxDepth)}
	case c.pass('{'):
		return c.object(depth + 1)
	case c.pass('['):
		return c.list(key, depth+1)
	case next == '"':
		return c.text(most(key))
	}
	return c.number()
}

func (c *checker) object(depth int) error {
	seen := map[string]bool{}
	for !c.pass('}') {
		if len(seen) > 0 && !c.pass(',') {
			return errCut
		}
		key, err := c.key()
		if err != nil {
			return err
		}
		folded, met := c.folded[key]
		if !met {
			folded = strings.ToLower(strings.ToUpper(key))
			c.folded[key] = folded
		}
		if seen[folded] {
			return &Unusable{"." + key, "is there twice"}
		}
		seen[folded] = true
		if err := c.value(key, depth); err != nil {
			return below("."+key, err)
		}
	}
	return nil
}

func (c *checker) key() (key string, err error) {
	raw, err := c.quoted()
	if err != nil {
		return "", err
	}
	key = string(raw[1 : len(raw)-1])
	if strings.Contains(key, `\`) || !utf8.ValidString(key) {
		if err := json.Unmarshal(raw, &key); err != nil {
			return "", err
		}
	}
	if len(key) > maxText {
		return "", &Unusable{"", fmt.Sprintf("has a key of %d bytes, %d at most", len(key),
			maxText)}
	}
	if !c.pass(':') {
		return "", errCut
	}
	return key, nil
}

func (c *checker) list(key string, depth int) error {
	for i := 0; !c.pass(']'); i++ {
		if i > 0 && !c.pass(',') {
			return errCut
		}
		if i == maxItems {
			return &Unusable{"", fmt.Sprintf("has more than %d items", maxItems)}
		}
		if err := c.value(key, depth); err != nil {
			return below(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// quoted skips a string and returns it as written, with its quotes.
func (c *checker) quoted() ([]byte, error) {
	if c.next() != '"' {
		return nil, errCut
	}
	from := c.at
	for c.at++; c.at < len(c.data); c.at++ {
		switch b := c.data[c.at]; {
		case b == '\\':
			c.at++
		case b == '"':
			c.at++
			return c.data[from:c.at], nil
		case b < ' ':
			return nil, errCut
		}
	}
	return nil, errCut
}

// text checks a string. It unquotes it only if it may be too long: an invalid UTF-8 byte becomes
// three bytes.
func (c *checker) text(most int) error {
	raw, err := c.quoted()
	if err != nil || 3*len(raw) <= most {
		return err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	return tooLong(len(text), most)
}

// number checks a number, true, false or null.
func (c *checker) number() error {
	rest := c.data[c.at:]
	if end := bytes.IndexAny(rest, ",]} \n\r\t"); end >= 0 {
		rest = rest[:end]
	}
	if !json.Valid(rest) {
		return errCut
	}
	c.at += len(rest)
	return tooLong(len(rest), maxText)
}

// below prepends a step to an error's path.
func below(step string, err error) error {
	if u, ok := err.(*Unusable); ok {
		u.Path = step + u.Path
	}
	return err
}

func tooLong(length, most int) error {
	if length <= most {
		return nil
	}
	return &Unusable{"", fmt.Sprintf("is %d bytes long, %d at most", length, most)}
}

// most returns the maximum bytes of a text with the given key.
func most(key string) int {
	switch key {
	case "id", "channelId", "categoryId", "title", "channelTitle", "tags", "publishedAt",
		"duration", "url", "nextPageToken", "gl", "name":
		return maxText
	}
	return maxProse
}
