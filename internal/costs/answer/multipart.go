package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
)

// The bounds of a multipart body.
const (
	maxParts = 1000
	maxText  = 1 << 20 // bytes of all that are no files
)

// ParseMultipart reads the fields of a multipart/form-data body, as ParseUnique would read an
// object: numbers, true and false as such, anything else as text. Files are passed over. A field
// that comes twice is an error, and so is one that some readers would decode first.
func ParseMultipart(data []byte, boundary string) (map[string]any, error) {
	if boundary == "" {
		return nil, errors.New("its Content-Type has no boundary")
	}
	in := multipart.NewReader(bytes.NewReader(data), boundary)
	all, left := map[string]any{}, maxText
	for range maxParts {
		part, err := in.NextRawPart()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, errors.New("it is not multipart/form-data")
		}
		kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil || kind != "form-data" || params["name"] == "" ||
			len(part.Header["Content-Disposition"]) > 1 {
			return nil, errors.New("one of its parts has no name")
		}
		if _, file := params["filename"]; file {
			continue
		}
		name := params["name"]
		if _, again := all[name]; again {
			return nil, fmt.Errorf("its field %.40q comes twice", name)
		}
		if part.Header.Get("Content-Transfer-Encoding") != "" {
			return nil, fmt.Errorf("its field %.40q is encoded: send it as it is", name)
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

// fieldOf is a field as an expression knows it.
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
