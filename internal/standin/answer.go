package standin

import (
	"fmt"
	"strings"
)

// answer makes up data for fields: a connection has at most rows nodes, everything else is there
// once. Known are the values of fields at the top that are not made up.
func (c *call) answer(fields []field, known map[string]any, seed string) map[string]any {
	a := &answer{rows: int64(c.s.Rows), left: maxFields}
	return a.object(fields, known, seed)
}

type answer struct {
	rows int64
	left int // values that may still be made up
}

func (a *answer) object(fields []field, known map[string]any, seed string) map[string]any {
	object := map[string]any{}
	for _, f := range fields {
		if a.left--; a.left < 0 {
			return object
		}
		if value, ok := known[f.name]; ok {
			object[f.key()] = value
		} else if n, ok := f.pages(); ok {
			object[f.key()] = a.connection(f, min(n, a.rows), seed+"/"+f.name)
		} else if f.below != nil {
			object[f.key()] = a.object(f.below, nil, seed+"/"+f.name)
		} else {
			object[f.key()] = a.scalar(f.name, seed)
		}
	}
	return object
}

func (a *answer) connection(f field, n int64, seed string) map[string]any {
	object := map[string]any{}
	for _, part := range f.below {
		switch part.name {
		case "nodes", "edges":
			list := []any{}
			for i := range n {
				list = append(list, a.object(part.below, nil, fmt.Sprintf("%s:%d", seed, i)))
			}
			object[part.key()] = list
		case "pageInfo":
			object[part.key()] = a.object(part.below, map[string]any{"hasNextPage": false,
				"hasPreviousPage": false, "startCursor": "start", "endCursor": "end"}, seed)
		case "totalCount":
			object[part.key()] = a.rows
		default:
			object[part.key()] = a.scalar(part.name, seed)
		}
	}
	return object
}

func (a *answer) scalar(name, seed string) any {
	switch {
	case strings.HasSuffix(strings.ToLower(name), "count"), name == "number":
		return 7
	case strings.HasPrefix(name, "is") || strings.HasPrefix(name, "has"):
		return false
	case strings.HasSuffix(name, "At"):
		return "2026-01-02T03:04:05Z"
	}
	if len(seed) > 100 {
		seed = seed[len(seed)-100:]
	}
	return name + " of " + seed
}
