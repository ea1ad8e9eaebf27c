package grammar

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document returns the top of the only YAML document in data, or nil if there is none.
func document(data []byte) (*yaml.Node, *Problem) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := in.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxProblem(data, err)
	}
	switch err := in.Decode(&more); {
	case err == nil:
		return nil, &Problem{Line: more.Line, Text: "a second YAML document: write one"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(data, err)
	}
	return doc.Content[0], nil
}

// syntaxProblem returns the parser's message with the probable cause. It rewords the message
// about anchors, which repeats text of the file that may be a key.
func syntaxProblem(data []byte, err error) *Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		digits, after, _ := strings.Cut(rest, ": ")
		for _, d := range digits {
			line = line*10 + int(d-'0')
		}
		text = after
		if strings.HasPrefix(text, "did not find expected") {
			line++ // the parser counts from 0 here, and from 1 elsewhere
		}
	}
	for i, l := range bytes.Split(data, []byte("\n")) {
		if indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return &Problem{Line: i + 1, Text: "a tab: YAML is indented with spaces"}
		}
	}
	switch {
	case strings.Contains(text, "anchor"):
		text = "an alias (*) of nothing: put the text into quotes"
	case strings.HasPrefix(text, "mapping values"):
		text += ": is the indentation right?"
	case strings.Contains(text, "did not find expected ',' or"),
		strings.Contains(text, "end of stream"),
		strings.HasPrefix(text, "could not find expected ':'"):
		text += ": is a bracket or a quote not closed, or the file cut short?"
	}
	return &Problem{Line: line, Text: text}
}
