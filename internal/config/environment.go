package config

import "quotabudget/internal/ledger"

// environment applies the variables that override the file. The variable of a key is read when the
// key is needed.
func (r *reader) environment() {
	r.over("QUOTA_LEDGER", &r.cfg.Ledger, ledger.CheckURL)
	r.over("QUOTA_CATALOG", &r.cfg.Catalog, checkCatalog)
	if r.over("YOUTUBE_ENDPOINT", &r.cfg.YouTube.Endpoint, checkEndpoint) {
		r.cfg.YouTube.Endpoint = withSlash(r.cfg.YouTube.Endpoint)
	}
}

func (r *reader) over(variable string, field *string, check func(string) error) bool {
	text := r.getenv(variable)
	if text == "" {
		return false
	}
	if err := check(text); err != nil {
		r.outside = append(r.outside, Problem{Where: variable, Text: err.Error()})
	}
	*field = text
	r.cfg.Environment = append(r.cfg.Environment, variable)
	return true
}
