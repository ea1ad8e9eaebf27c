package costs

import "strings"

// fieldParam returns the first of the named parameters of an item in a text of structured fields,
// such as r of `"daily";r=50;t=30` (RateLimit) or limit of `limit=100, remaining=50`. Of several
// items it reads the item of that name. It returns false if there is no such text, item or
// parameter, or if there are several items and no name is given.
func fieldParam(text, item string, names ...string) (string, bool) {
	var found []string
	for _, member := range splitOutside(text, ',') {
		parts := splitOutside(member, ';')
		name := strings.Trim(strings.TrimSpace(parts[0]), `"`)
		if item != "" && name != item {
			continue
		}
		if value, ok := valueOf(parts, names); ok {
			found = append(found, value)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// valueOf returns the value of the first of the names that the parts define as name=value.
func valueOf(parts, names []string) (string, bool) {
	for _, name := range names {
		for _, part := range parts {
			key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			if ok && key == name {
				return strings.Trim(value, `"`), true
			}
		}
	}
	return "", false
}

// splitOutside splits a text at marks outside quotes.
func splitOutside(text string, mark byte) (parts []string) {
	quoted, begin := false, 0
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == mark && !quoted:
			parts, begin = append(parts, text[begin:i]), i+1
		}
	}
	return append(parts, text[begin:])
}
