package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/serve/pages"
)

// operations lists the methods of the API for its page, by path.
func operations(document *huma.OpenAPI) (all []pages.Operation) {
	for path, item := range document.Paths {
		for method, o := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post} {
			if o == nil {
				continue
			}
			shown := pages.Operation{Method: method, Path: path, Summary: o.Summary}
			for _, p := range o.Parameters {
				shown.Fields = append(shown.Fields, field(p.Name, p.In, p.Required, p.Schema))
			}
			if o.RequestBody != nil {
				body := o.RequestBody.Content["application/json"].Schema
				body = document.Components.Schemas.SchemaFromRef(body.Ref)
				for name, schema := range body.Properties {
					required := slices.Contains(body.Required, name)
					shown.Fields = append(shown.Fields, field(name, "body", required, schema))
				}
				slices.SortFunc(shown.Fields, func(a, b pages.Field) int {
					return cmp.Compare(a.Name, b.Name)
				})
			}
			all = append(all, shown)
		}
	}
	slices.SortFunc(all, func(a, b pages.Operation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return all
}

func field(name, in string, required bool, s *huma.Schema) pages.Field {
	var notes []string
	if s.Format != "" && s.Type == huma.TypeString {
		notes = append(notes, s.Format)
	}
	if s.Minimum != nil && s.Maximum != nil {
		notes = append(notes, fmt.Sprintf("%g to %g", *s.Minimum, *s.Maximum))
	}
	if s.Default != nil {
		notes = append(notes, fmt.Sprintf("default %v", s.Default))
	}
	return pages.Field{Name: name, In: in, Required: required, Type: s.Type, Meaning: s.Description,
		Notes: strings.Join(notes, ", ")}
}
