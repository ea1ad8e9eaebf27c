package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// ErrTwice is JSON that means different things to different readers.
var ErrTwice = errors.New("a key appears twice in its JSON")

var errNoJSON = errors.New("it is not JSON")

// maxDepth is how deep JSON may be nested.
const maxDepth = 200

// MaxValues is how many values a request may have: each takes some hundred bytes of memory, however
// short it is. The largest batches of tokens have 300,000.
const MaxValues = 500_000

// MaxParts is how many objects and lists an answer may have. Empty ones take a hundred times as
// much memory as they have bytes.
const MaxParts = 200_000

// large is held while more than largeSize bytes are decoded: of what takes much memory and all of a
// processor, no more is done at once than there are processors.
var large = make(chan struct{}, runtime.GOMAXPROCS(0))

const largeSize = 64 << 10

// inTurn waits until the bytes may be decoded. What it returns is to be called then.
func inTurn(data []byte) (done func()) {
	if len(data) <= largeSize {
		return func() {}
	}
	large <- struct{}{}
	return func() { <-large }
}

// ParseUnique decodes JSON. An object that has a key twice is an error: one reader takes the first,
// another the last. So are more than MaxValues.
func ParseUnique(data []byte) (any, error) {
	if n := countOutside(data, ",[{"); n > MaxValues {
		return nil, fmt.Errorf("its JSON has %d values: %d at most", n, MaxValues)
	}
	defer inTurn(data)()
	if value, ok := parsePlain(data); ok {
		return value, nil
	}
	var p parser
	return p.parse(data)
}

var mark = []byte("\ufeff") // of the byte order, which some servers send before their text

// Body returns the text of a response without a byte order mark, white space around it and the
// separators of application/json-seq.
func Body(data []byte) []byte {
	data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), mark))
	if bytes.HasPrefix(data, []byte{separator}) {
		data = bytes.ReplaceAll(data, []byte{separator}, []byte{' '})
	}
	return data
}

const separator = 0x1e

// Parse decodes the JSON of a response. Values that follow one another, such as one a line, are a
// list of them. An object that has a key twice is ErrTwice, and more than MaxParts are an error.
func Parse(data []byte) (any, error) {
	data = Body(data)
	if n := countOutside(data, "[{"); n > MaxParts {
		return nil, fmt.Errorf("its JSON has %d objects and lists: %d at most", n, MaxParts)
	}
	defer inTurn(data)()
	if value, ok := parsePlain(data); ok {
		return value, nil
	}
	var p parser
	return p.parseAll(data)
}

// parsePlain decodes in one pass JSON in which no object has a key twice, as nearly all is: then
// there are as many keys as colons outside of its texts. It is false for anything else, and the
// parser says why.
func parsePlain(data []byte) (any, bool) {
	var value any
	if json.Unmarshal(data, &value) != nil {
		return nil, false
	}
	keys, ok := keysOf(value, 0)
	return value, ok && keys == countOutside(data, ":")
}

// keysOf counts the keys of all objects in the value; it is false if they are nested too deep.
func keysOf(value any, depth int) (keys int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	count := func(item any) bool {
		n, ok := keysOf(item, depth+1)
		keys += n
		return ok
	}
	switch value := value.(type) {
	case map[string]any:
		keys = len(value)
		for _, item := range value {
			if !count(item) {
				return 0, false
			}
		}
	case []any:
		for _, item := range value {
			if !count(item) {
				return 0, false
			}
		}
	}
	return keys, true
}

// countOutside counts the marks of JSON that are not in a text.
func countOutside(data []byte, marks string) (n int) {
	text := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			text = !text
		case c == '\\':
			i++ // only texts have it, and a character after it
		case !text && strings.IndexByte(marks, c) >= 0:
			n++
		}
	}
	return n
}

type parser struct{ in *json.Decoder }

func (p *parser) parse(data []byte) (any, error) {
	p.in = json.NewDecoder(bytes.NewReader(data))
	value, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("its JSON is followed by something else")
	}
	return value, nil
}

// parseAll decodes one value, or several as a list.
func (p *parser) parseAll(data []byte) (any, error) {
	p.in = json.NewDecoder(bytes.NewReader(data))
	value, err := p.value(0)
	all := []any{value}
	for err == nil && p.in.More() {
		value, err = p.value(0)
		all = append(all, value)
	}
	switch {
	case err != nil:
		return nil, err
	case len(all) == 1:
		return value, nil
	}
	return all, nil
}

func (p *parser) value(depth int) (any, error) {
	token, err := p.in.Token()
	if err != nil {
		return nil, errNoJSON
	}
	if depth > maxDepth {
		return nil, errors.New("its JSON is nested too deep")
	}
	switch token {
	case json.Delim('{'):
		return p.object(depth)
	case json.Delim('['):
		list := []any{}
		for p.in.More() {
			value, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, p.end()
	}
	return token, nil
}

func (p *parser) object(depth int) (any, error) {
	all := map[string]any{}
	for p.in.More() {
		key, err := p.in.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, errNoJSON
		}
		if _, doubled := all[name]; doubled {
			return nil, ErrTwice
		}
		if all[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return all, p.end()
}

// end passes the bracket that closes an object or a list.
func (p *parser) end() error {
	if _, err := p.in.Token(); err != nil {
		return errNoJSON
	}
	return nil
}
