package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// errTwice is JSON that means different things to different readers.
var errTwice = errors.New("a key appears twice in its JSON")

var errNoJSON = errors.New("it is not JSON")

// maxDepth is how deep JSON may be nested.
const maxDepth = 200

// ParseUnique decodes JSON. An object that has a key twice is an error: one reader takes the first,
// another the last.
func ParseUnique(data []byte) (any, error) {
	p := parser{twice: refuseIt}
	return p.parse(data)
}

// ParseBoth decodes JSON in the two ways in which it can be read where an object has a key twice:
// with the last of them, and with the first. Elsewhere both are the same. A key that is there more
// than twice is an error.
func ParseBoth(data []byte) (last, first any, err error) {
	p := parser{twice: takeLast}
	if last, err = p.parse(data); err != nil || !p.met {
		return last, last, err
	}
	p = parser{twice: takeFirst}
	first, err = p.parse(data)
	return last, first, err
}

// what becomes of a key that an object has twice
type doubled int

const (
	refuseIt doubled = iota
	takeLast
	takeFirst
)

type parser struct {
	in    *json.Decoder
	twice doubled
	met   bool // there was such a key
}

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
	var again map[string]bool
	for p.in.More() {
		key, err := p.in.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, errNoJSON
		}
		_, doubled := all[name]
		if doubled {
			if p.twice == refuseIt || again[name] {
				return nil, errTwice
			}
			if again == nil {
				again = map[string]bool{}
			}
			again[name], p.met = true, true
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if !doubled || p.twice == takeLast {
			all[name] = value
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
