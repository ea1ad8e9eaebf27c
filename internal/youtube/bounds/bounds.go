// Package bounds reads what the upstream answers: of a bounded size, and as plain text.
package bounds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// What an answer may come to. Each bound is far above what the upstream documents (titles of 100
// characters, descriptions of 5,000 bytes, tags of 500 characters in all) and far below what would
// hurt.
const (
	maxAnswer = 16 << 20 // bytes of a successful answer, unpacked
	MaxError  = 1 << 20  // bytes of any other; the rest is dropped
	maxValues = 100_000  // values in an answer; a page of videos has some 5,000
	maxDepth  = 64       // objects and lists within one another
	maxItems  = 1000     // of a list
	maxText   = 4 << 10  // bytes of a title, a name, a tag, an ID, a token
	maxProse  = 64 << 10 // bytes of a description, and of what we do not read
)

// Unusable is an answer that is too large, or ambiguous. Asking again would not help.
type Unusable struct {
	Path    string // items[3].snippet.title
	Problem string
}

func (u *Unusable) Error() string {
	path := Plain(strings.TrimPrefix(u.Path, "."))
	return "the answer cannot be used: " + cmp.Or(path, "it") + " " + u.Problem
}

// Read reads the body of an answer. An error is cut where it becomes too long.
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

// Check returns an Unusable for JSON with a value that is too long, too many values or too deep a
// nesting. An object with the same key twice is one too, since what it means depends on the reader.
func Check(data []byte) error {
	c := checker{in: json.NewDecoder(bytes.NewReader(data))}
	c.in.UseNumber()
	return c.value("", 0)
}

type checker struct {
	in     *json.Decoder
	values int
}

// value checks the next value, which is under key, at the depth.
func (c *checker) value(key string, depth int) error {
	token, err := c.in.Token()
	if err != nil {
		return err
	}
	if c.values++; c.values > maxValues {
		return &Unusable{"", fmt.Sprintf("is where it has more than %d values", maxValues)}
	}
	switch v := token.(type) {
	case string:
		return tooLong(v, most(key))
	case json.Number:
		return tooLong(string(v), maxText)
	case json.Delim:
		if depth == maxDepth {
			return &Unusable{"", fmt.Sprintf("is nested more than %d deep", maxDepth)}
		}
		if v == '{' {
			return c.object(depth + 1)
		}
		return c.list(key, depth+1)
	}
	return nil
}

func (c *checker) object(depth int) error {
	seen := map[string]bool{}
	for c.in.More() {
		token, err := c.in.Token()
		if err != nil {
			return err
		}
		key := token.(string) // the decoder takes nothing else
		if len(key) > maxText {
			return &Unusable{"", fmt.Sprintf("has a key of %d bytes, %d at most", len(key),
				maxText)}
		}
		folded := strings.ToLower(strings.ToUpper(key)) // as encoding/json compares them
		if seen[folded] {
			return &Unusable{"." + key, "is there twice"}
		}
		seen[folded] = true
		if err := c.value(key, depth); err != nil {
			return below("."+key, err)
		}
	}
	_, err := c.in.Token() // the end
	return err
}

func (c *checker) list(key string, depth int) error {
	for i := 0; c.in.More(); i++ {
		if i == maxItems {
			return &Unusable{"", fmt.Sprintf("has more than %d items", maxItems)}
		}
		if err := c.value(key, depth); err != nil {
			return below(fmt.Sprintf("[%d]", i), err)
		}
	}
	_, err := c.in.Token()
	return err
}

// below puts the step before the path of what was found.
func below(step string, err error) error {
	if u, ok := err.(*Unusable); ok {
		u.Path = step + u.Path
	}
	return err
}

func tooLong(text string, most int) error {
	if len(text) <= most {
		return nil
	}
	return &Unusable{"", fmt.Sprintf("is %d bytes long, %d at most", len(text), most)}
}

// most is how many bytes a text under the key may have.
func most(key string) int {
	switch key {
	case "id", "channelId", "categoryId", "title", "channelTitle", "tags", "publishedAt",
		"duration", "url", "nextPageToken", "gl", "name":
		return maxText
	}
	return maxProse
}
