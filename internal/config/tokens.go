package config

import (
	"fmt"

	"quotabudget/internal/limit"
)

// ReadTokens returns the callers in the token file at path. Each problem begins with where and
// path. See limit.ParseTokens for named.
func ReadTokens(where, path string, named bool) (*limit.Tokens, error) {
	text, err := ReadFile(path, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", where, path, err)
	}
	return limit.ParseTokens(where+" "+path, string(text), named)
}
