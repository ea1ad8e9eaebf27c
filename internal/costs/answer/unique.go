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
func ParseUnique(data []byte) (value any, err error) {
	in := json.NewDecoder(bytes.NewReader(data))
	value, err = parse(in, 0)
	if err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("its JSON is followed by something else")
	}
	return value, nil
}

func parse(in *json.Decoder, depth int) (any, error) {
	token, err := in.Token()
	if err != nil {
		return nil, errNoJSON
	}
	if depth > maxDepth {
		return nil, errors.New("its JSON is nested too deep")
	}
	switch token {
	case json.Delim('{'):
		return object(in, depth)
	case json.Delim('['):
		list := []any{}
		for in.More() {
			value, err := parse(in, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, end(in)
	}
	return token, nil
}

func object(in *json.Decoder, depth int) (any, error) {
	all := map[string]any{}
	for in.More() {
		key, err := in.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, errNoJSON
		}
		if _, again := all[name]; again {
			return nil, errTwice
		}
		if all[name], err = parse(in, depth+1); err != nil {
			return nil, err
		}
	}
	return all, end(in)
}

// end passes the bracket that closes an object or a list.
func end(in *json.Decoder) error {
	if _, err := in.Token(); err != nil {
		return errNoJSON
	}
	return nil
}
