package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Secret is the place of an API key or another secret: an environment variable or a file. It does
// not contain the key, so nothing that prints a Secret can leak it. The zero Secret names no place.
type Secret struct {
	Env  string // variable
	File string // path

	getenv func(string) string
	owner  string // credential, for the error about a secret without a place
	name   string // adminKey or notifySecret; "" for an API key
}

// Keys of the configuration that name the place of an admin key, or of the secret that signs
// notifications.
const (
	adminKey     = "admin_key"
	notifySecret = "secret"
)

// FileSecret returns the secret in the file at path.
func FileSecret(path string, getenv func(string) string) Secret {
	return Secret{File: path, getenv: getenv}
}

// maxKeyBytes is more than any API key has: a longer file is the wrong one.
const maxKeyBytes = 4096

// Key reads the key. Errors name the variable or the file, never its content.
func (s Secret) Key() (string, error) {
	kind := cmp.Or(map[string]string{adminKey: "admin key", notifySecret: "secret of notify"}[s.name],
		"api key")
	var where, key, empty string
	switch {
	case s.Env != "":
		where, key, empty = "environment variable "+s.Env, s.getenv(s.Env), "is not set or empty"
	case s.File != "":
		where, empty = "file "+s.File, "is empty"
		text, err := ReadFile(s.File, maxKeyBytes)
		if err != nil {
			return "", fmt.Errorf("%s: %s: %w", kind, where, reason(err))
		}
		key = string(text)
	default:
		return "", fmt.Errorf("credential %s has no %s", s.owner, cmp.Or(s.name, "api_key"))
	}
	if key = strings.TrimSpace(key); key == "" {
		return "", fmt.Errorf("%s: %s %s", kind, where, empty)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("%s: %s contains more than a key: put the key alone on one "+
				"line, in ASCII, without a byte order mark", kind, where)
		}
	}
	return key, nil
}

// Advice returns what to do if there is no key.
func (s Secret) Advice() string {
	name := cmp.Or(s.name, "api_key")
	switch {
	case s.Env != "":
		return "export " + s.Env + " where this program runs (cron and systemd read no profile), " +
			"or name a file: " + name + ": {file: path}"
	case s.File != "":
		return "write the key into that file, readable by the user that runs this program"
	}
	return "write " + name + ": {env: VARIABLE} or {file: path} under this credential in quota.yaml"
}

// Exposed reports whether other users can read the secret's file, and its mode.
func (s Secret) Exposed() (fs.FileMode, bool) {
	if s.File == "" {
		return 0, false
	}
	// systemd admits the reader of its credentials by an access control list, which looks like a
	// mode that admits the group.
	dir := s.getenv("CREDENTIALS_DIRECTORY")
	info, err := os.Stat(s.File)
	if err != nil || dir != "" && filepath.Dir(s.File) == filepath.Clean(dir) {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o077 != 0
}

// WarnExposed logs a warning if other users can read the secret's file.
func (s Secret) WarnExposed(log *slog.Logger) {
	if mode, exposed := s.Exposed(); exposed {
		log.Warn("other users can read a file of secrets: chmod 600 it",
			"file", s.File, "mode", fmt.Sprintf("%04o", mode))
	}
}

// Placed reports whether the secret names a place.
func (s Secret) Placed() bool { return s.Env != "" || s.File != "" }

// String returns the place of the key.
func (s Secret) String() string {
	switch {
	case s.Env != "":
		return "env " + s.Env
	case s.File != "":
		return "file " + s.File
	}
	return "none"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// ServiceAccount is the account that reads Google's own usage figures. Like a Secret, it contains
// the place of the key, not the key.
type ServiceAccount struct {
	File     string // path of the JSON key; "" for none
	Endpoint string // URL of a stand-in, ending in a slash; "" for Google
}

// Key reads the file, up to the given number of bytes. Errors name the file, never its content.
func (s ServiceAccount) Key(limit int64) ([]byte, error) {
	text, err := ReadFile(s.File, limit)
	if err != nil {
		return nil, fmt.Errorf("service account: file %s: %w", s.File, reason(err))
	}
	return text, nil
}

// WithoutKeys removes from NAME=VALUE pairs each variable that is the place of a credential's key,
// contains such a key or is the secret of notify. A command that spends through the proxy needs
// none of them.
func (c *Config) WithoutKeys(variables []string) []string {
	names, keys := map[string]bool{KeyVariable: true}, map[string]bool{}
	secrets := []Secret{c.Notify.Secret}
	for _, cred := range c.Credentials {
		secrets = append(secrets, cred.APIKey, cred.AdminKey)
	}
	for _, secret := range secrets {
		names[secret.Env] = true
		if key, err := secret.Key(); secret.Placed() && err == nil {
			keys[key] = true
		}
	}
	var others []string
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		if !names[name] && !keys[strings.TrimSpace(value)] {
			others = append(others, variable)
		}
	}
	return others
}
