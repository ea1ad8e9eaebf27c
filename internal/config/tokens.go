package config

import (
	"errors"
	"fmt"
	"slices"

	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// ReadTokens returns the callers in the token file at path. Each problem begins with where and
// path. See limit.ParseTokens for named.
func (c *Config) ReadTokens(where, path string, named bool) (*limit.Tokens, error) {
	text, err := ReadFile(path, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", where, path, err)
	}
	where += " " + path
	tokens, err := limit.ParseTokens(where, string(text), named)
	if err != nil {
		return nil, err
	}
	known := c.bucketNames()
	for _, name := range tokens.Buckets() {
		if !slices.Contains(known, name) && !slices.Contains(known, quota.WholeOf(name)) {
			err = errors.Join(err, fmt.Errorf("%s: no credential has the bucket %q%s", where, name,
				words.DidYouMean(name, known)))
		}
	}
	return tokens, err
}

// bucketNames returns the buckets of the credentials, by their limits and price lists.
func (c *Config) bucketNames() (names []string) {
	for _, cred := range c.Credentials {
		names = append(names, c.Table(cred).BucketNames()...)
		for _, l := range cred.Limits {
			names = append(names, l.Bucket)
		}
	}
	return names
}
