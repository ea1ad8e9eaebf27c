package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/ledger"
)

const canary = "AIzaSyCANARY0123456789abcdefghijklmnopq"

// TestPastedKey: a key that stands in the file, wherever and in whatever form, is refused and not
// repeated.
func TestPastedKey(t *testing.T) {
	for _, at := range []string{
		"credentials: [{name: a, api_key: %s}]",
		"credentials: [{name: a, api_key: {env: %s}}]",
		"credentials: [{name: a, api_key: {file: %s}}]",
		"credentials: [{name: a, api_key: {%s: x}}]",
		"credentials: [{name: a, api_key: [%s]}]",
		"credentials: [{name: a, api_key: {key: %s}}]",
		"credentials: [{name: a, api_key: *%s}]",
		"credentials: [{name: a, apikey: %s}]",
		"credentials: [{name: %s}]",
		"credentials: [%s]",
		"credentials: %s",
		"ledger: %s",
		"ledger: mysql://%s@h",
		"youtube: {endpoint: 'https://h/?key=%s'}",
		"%s: a",
		"%s",
		"ingest: {regions: [%s], pages: 0}",
		"ingest: {schedule: %s}",
		"api_key: \"%s",
	} {
		_, err := Load(t.Context(), write(t, fmt.Sprintf(at, canary)), env("HOME", "/h"))
		if err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, key := range []string{"ghp_CANARYxxxxxxxxxxxxxxxxxxxxxxxxxxxx1",
		"CANARYq5cr3t5yWq8hLx0cVbN2kPzT",
		"whsec_CANARYMfKQ9r8GKYqrTwjUPD8ILPZIo2"} {
		text := "credentials: [{name: a, api_key: {env: " + key + "}}]\nnotify: {url: 'https://h/', " +
			"secret: {env: " + key + "}}"
		_, err := Load(t.Context(), write(t, text), env("HOME", "/h"))
		if err == nil || strings.Contains(err.Error(), "CANARY") ||
			strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%s: %v", key, err)
		}
	}
	odd := write(t, "credentials:\n- name: a\n  api_key: s3cr3t-of-no-known-form")
	_, err := Load(t.Context(), odd, env("HOME", "/h"))
	if err == nil || strings.Contains(err.Error(), "s3cr3t") ||
		!strings.Contains(err.Error(), ":3: credentials.api_key: this file contains a key") ||
		!strings.Contains(err.Error(), "make a new key") {
		t.Error(err)
	}
}

func TestKeyErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) Secret {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return FileSecret(path, env())
	}
	for _, c := range []struct {
		secret Secret
		want   string
	}{
		{Secret{owner: "key1"}, "credential key1 has no api_key"},
		{Secret{Env: "NO_KEY", getenv: env()}, "environment variable NO_KEY is not set or empty"},
		{Secret{Env: "K", getenv: env("K", " \n")}, "environment variable K is not set or empty"},
		{Secret{Env: "K", getenv: env("K", canary+"\nx")},
			"environment variable K contains more than a key"},
		{file("empty", "\n"), "empty is empty"},
		{file("two", canary+" "+canary), "two contains more than a key"},
		{file("big", strings.Repeat(canary, 200)), "big: longer than 4096 bytes"},
		{FileSecret(dir+"/nope", env()), "nope: no such file"},
		{FileSecret(dir, env()), "is a directory"},
		{FileSecret("/dev/zero", env()), "file /dev/zero: is a device, not a file"},
		{FileSecret(fifo(t), env()), "pipe: is a pipe, not a file"},
	} {
		key, err := c.secret.Key()
		if key != "" || err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), canary) {
			t.Errorf("%v: %q, %v", c.secret, key, err)
		}
	}
	if key, err := file("good", " "+canary+"\r\n").Key(); key != canary || err != nil {
		t.Errorf("%q, %v", key, err)
	}
}

// TestKeyIsNotPrinted: whatever prints a configuration prints where the key is, never the key.
func TestKeyIsNotPrinted(t *testing.T) {
	cfg := load(t, "", "YOUTUBE_API_KEY", canary)
	if key, err := cfg.Credentials[0].APIKey.Key(); key != canary || err != nil {
		t.Fatal(key, err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %s\n", *cfg, cfg.Credentials, cfg.Credentials,
		cfg.Credentials[0].APIKey)
	must(t, json.NewEncoder(&out).Encode(cfg.Credentials[0].APIKey))
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "credential", cfg.Credentials[0].APIKey)
	if strings.Contains(out.String(), canary) ||
		!strings.Contains(out.String(), "YOUTUBE_API_KEY") {
		t.Error(out.String())
	}
}

func TestHidePassword(t *testing.T) {
	for url, want := range map[string]string{
		"redis://h:1/0":                              "redis://h:1/0",
		"redis://:pw@h:1/0":                          "redis://***@h:1/0",
		"rediss://u:p@w@h":                           "rediss://***@h",
		"redis+sentinel://u:p/w@a,b/master":          "redis+sentinel://***@a,b/master",
		"redis+cluster://a?addr=c&password=pw":       "redis+cluster://a?addr=***&password=***",
		"rediss://u:pw@h/0?ca=/c&key=/k&pool_size=9": "rediss://***@h/0?ca=/c&key=/k&pool_size=9",
		"redis://u:p#w@h:1/0":                        "redis://***",
		"redis://h:1/0#:pw@h":                        "redis://***",
		"sqlite:///a@b.db":                           "sqlite:///a@b.db",
		"sqlite:a.db":                                "sqlite:a.db",
	} {
		if got := HidePassword(url); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
}

// TestPasswordsWithSigns: what is shown of a URL that is in force holds no part of its password,
// whatever signs that has.
func TestPasswordsWithSigns(t *testing.T) {
	shown := 0
	for sign := rune(' '); sign < 0x100; sign++ {
		for _, form := range []string{
			"redis://:%s@h:1/0", "redis://u:%s@h?pool_size=2", "rediss+cluster://u:%s@a,b",
			"redis+sentinel://u:%s@a/main",
			"redis+sentinel://a/main?sentinel_password=%s",
			"redis+sentinel://a/main?sentinel_user=x&sentinel_password=%s&pool_size=1",
			"redis://a/0#%s", "redis+cluster://a/%s", "redis://%s",
		} {
			for _, start := range []string{"hunter", "12"} {
				password := start + string(sign) + "horse"
				url := fmt.Sprintf(form, password)
				if ledger.CheckURL(url) != nil || form == "redis://%s" &&
					!strings.Contains(url, "@") {
					continue
				}
				shown++
				if text := HidePassword(url); strings.Contains(text, "hunter") ||
					strings.Contains(text, "horse") {
					t.Errorf("%s is shown as %s", url, text)
				}
			}
		}
	}
	if shown < 500 {
		t.Errorf("only %d URLs were shown", shown)
	}
}
