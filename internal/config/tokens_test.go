package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBucketsOfTokens: a line of a token file names buckets that a credential has.
func TestBucketsOfTokens(t *testing.T) {
	t.Parallel()
	cfg, err := Load(t.Context(), "", env("QUOTA_STATE_DIR", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"bucket=default": "", "most=search_list=5": "", "bucket=default/part": "",
		"bucket=defualt":  `no credential has the bucket "defualt" (did you mean default?)`,
		"most=moneys=500": `no credential has the bucket "moneys"`,
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte("ci ci-token-0123456789ab "+line), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := cfg.ReadTokens("token_file:", path, false)
		if err != nil && !strings.Contains(err.Error(), want) || (want == "") != (err == nil) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
