package costs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
)

// Bounds of a multipart body.
const (
	maxParts = 1000
	maxText  = 1 << 20 // bytes of all fields except files
)

// parseMultipart reads the fields of a multipart/form-data body: numbers, true and false as such,
// anything else as text. Files are skipped. A field that comes twice is an error.
func parseMultipart(data []byte, boundary string) (map[string]any, error) {
	if boundary == "" {
		return nil, errors.New("its Content-Type has no boundary")
	}
	in := multipart.NewReader(bytes.NewReader(data), boundary)
	all, left := map[string]any{}, maxText
	for range maxParts {
		part, err := in.NextPart()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, errors.New("it is not multipart/form-data")
		}
		name := part.FormName()
		if _, again := all[name]; again {
			return nil, fmt.Errorf("its field %.40q comes twice", name)
		}
		if part.FileName() != "" {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(left)+1))
		if err != nil {
			return nil, errors.New("it is not multipart/form-data")
		}
		if left -= len(text); left < 0 {
			return nil, fmt.Errorf("its fields have more than %d bytes", maxText)
		}
		all[name] = fieldOf(text)
	}
	return nil, fmt.Errorf("it has more than %d parts", maxParts)
}

// parseForm reads the fields of an application/x-www-form-urlencoded body like parseMultipart.
func parseForm(data []byte) (map[string]any, error) {
	if len(data) > maxText {
		return nil, fmt.Errorf("its fields have more than %d bytes", maxText)
	}
	fields, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, errors.New("it is not application/x-www-form-urlencoded")
	}
	all := map[string]any{}
	for name, values := range fields {
		if len(values) > 1 {
			return nil, fmt.Errorf("its field %.40q comes twice", name)
		}
		all[name] = fieldOf([]byte(values[0]))
	}
	return all, nil
}

// fieldOf returns the value of a field in expressions.
func fieldOf(text []byte) any {
	var value any
	if json.Unmarshal(text, &value) == nil {
		switch value.(type) {
		case float64, bool:
			return value
		}
	}
	return string(text)
}
