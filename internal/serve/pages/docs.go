package pages

import (
	"context"
	"net/http"
	"time"
)

// Operation is a method of the API.
type Operation struct {
	Method, Path, Summary string
	Fields                []Field
}

// Field is a parameter of an operation, or a field of what is sent.
type Field struct {
	Name, In, Type, Meaning, Notes string
	Required                       bool
}

func (p *Pages) docs(context.Context, *http.Request, time.Time) (page, error) {
	return page{Title: "The API", Section: "docs", Body: p.Operations}, nil
}
