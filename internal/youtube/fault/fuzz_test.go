package fault_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"quotabudget/internal/youtube/fault"
)

// FuzzClassify looks for an error whose meaning hangs on the words that it repeats, or on how its
// JSON is laid out, and for what a terminal would act upon.
func FuzzClassify(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "errors", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var short bytes.Buffer // go test takes long to shorten what it finds of long seeds
		if json.Compact(&short, body) != nil {
			short.Reset()
			short.Write(body[:min(len(body), 200)])
		}
		f.Add(403, short.Bytes(), "units per day")
	}
	f.Add(400, []byte(`{"error":{"errors":[{"reason":"invalidParameter"}]}}`),
		"API key not valid. quotaExceeded")
	f.Fuzz(func(t *testing.T, status int, body []byte, words string) {
		status = 300 + int(uint(status)%300)
		got := fault.Classify(status, body)
		if len([]rune(got.Message)) > 301 || strings.ContainsFunc(got.Message+got.Reason,
			unicode.IsControl) || got.Kind.String() == "" {
			t.Errorf("%+v", got)
		}
		if got.Kind == fault.Exhausted && status != 403 && status != 429 && !saysQuota(body) {
			t.Errorf("%d %s is %+v", status, body, got)
		}
		var tree map[string]any
		in := json.NewDecoder(bytes.NewReader(body))
		in.UseNumber()
		if in.Decode(&tree) != nil || !json.Valid(body) {
			return
		}
		if len(body) < 1<<16 && !strings.Contains(got.Message, "is there twice") {
			if again := fault.Classify(status, marshal(tree)); again.Kind != got.Kind ||
				again.Reason != got.Reason {
				t.Errorf("%s is %+v, and in another order %+v", body, got, again)
			}
		}
		said, ok := tree["error"].(map[string]any)
		if !ok || !specific(said) {
			return
		}
		said["message"] = ""
		before := fault.Classify(status, marshal(tree))
		said["message"] = words
		if after := fault.Classify(status, marshal(tree)); after.Kind != before.Kind {
			t.Errorf("%d %s is %v, with the words %q %v", status, body, before.Kind, words,
				after.Kind)
		}
	})
}

func marshal(tree any) []byte {
	data, err := json.Marshal(tree)
	if err != nil {
		panic(err) // it was JSON
	}
	return data
}

// saysQuota reports whether a body says in any other way than by a message that a quota is gone,
// however it is escaped.
func saysQuota(body []byte) bool {
	var tree any
	if json.Unmarshal(body, &tree) == nil {
		body = marshal(tree)
	}
	for _, word := range []string{"quotaexceeded", "dailylimitexceeded", "quota_unit"} {
		if strings.Contains(strings.ToLower(string(body)), word) {
			return true
		}
	}
	return false
}

// specific reports whether an error gives a reason that says more than that something was wrong, or
// too much.
func specific(said map[string]any) bool {
	errs, _ := said["errors"].([]any)
	for _, e := range errs {
		item, _ := e.(map[string]any)
		switch reason, _ := item["reason"].(string); reason {
		case "", "badRequest", "rateLimitExceeded", "RATE_LIMIT_EXCEEDED":
		default:
			return true
		}
	}
	return false
}
