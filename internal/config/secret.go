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

// EnvSecret returns the secret in an environment variable.
func EnvSecret(name string, getenv func(string) string) Secret {
	return Secret{Env: name, getenv: getenv}
}

// maxKeyBytes is far longer than any API key: a longer file is the wrong one.
const maxKeyBytes = 4096

// Key reads the key. Errors name the variable or the file, never its content.
func (s Secret) Key() (string, error) {
	switch {
	case s.Env != "":
		where := "environment variable " + s.Env
		if strings.TrimSpace(s.getenv(s.Env)) == "" {
			return "", fmt.Errorf("%s: %s is not set or empty", s.words(), where)
		}
		return s.check(where, s.getenv(s.Env))
	case s.File != "":
		text, err := ReadFile(s.File, maxKeyBytes)
		if err != nil {
			return "", fmt.Errorf("%s: file %s: %w", s.words(), s.File, reason(err))
		}
		return s.check("file "+s.File, string(text))
	}
	if s.name == adminKey {
		return "", fmt.Errorf("credential %s has no admin_key: write admin_key: {env: VARIABLE} or "+
			"{file: path}", s.owner)
	}
	return "", fmt.Errorf("credential %s has no api_key: write api_key: {env: %s} or {file: path}",
		s.owner, KeyVariable)
}

// words returns the kind of the secret, for messages.
func (s Secret) words() string {
	switch s.name {
	case adminKey:
		return "admin key"
	case notifySecret:
		return "secret of notify"
	}
	return "api key"
}

// Advice returns what to do if there is no key.
func (s Secret) Advice() string {
	switch {
	case s.Env != "":
		return "export " + s.Env + " where this program runs (cron and systemd read no profile), " +
			"or name a file: " + cmp.Or(s.name, "api_key") + ": {file: path}"
	case s.File != "":
		return "write the key into that file, readable by the user that runs this program"
	}
	return "name the variable or the file that holds the key"
}

// Exposed reports whether other users can read the secret's file, and its mode.
func (s Secret) Exposed() (fs.FileMode, bool) {
	if s.File == "" || s.underSystemd() {
		return 0, false
	}
	info, err := os.Stat(s.File)
	if err != nil {
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

// underSystemd reports whether the file is a systemd credential. An access control list lets its
// one reader in, which looks like a mode that lets the group in.
func (s Secret) underSystemd() bool {
	dir := s.getenv("CREDENTIALS_DIRECTORY")
	return dir != "" && filepath.Dir(s.File) == filepath.Clean(dir)
}

// Placed reports whether the secret names a place.
func (s Secret) Placed() bool { return s.Env != "" || s.File != "" }

func (s Secret) check(where, text string) (string, error) {
	key := strings.TrimSpace(text)
	if key == "" {
		return "", fmt.Errorf("%s: %s is empty", s.words(), where)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("%s: %s contains more than a key: put the key alone on one line",
				s.words(), where)
		}
	}
	return key, nil
}

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
func (s ServiceAccount) Key(most int64) ([]byte, error) {
	text, err := ReadFile(s.File, most)
	if err != nil {
		return nil, fmt.Errorf("service account: file %s: %w", s.File, reason(err))
	}
	return text, nil
}

// Secret returns the file as a secret, which other users should not be able to read.
func (s ServiceAccount) Secret(getenv func(string) string) Secret {
	return FileSecret(s.File, getenv)
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
