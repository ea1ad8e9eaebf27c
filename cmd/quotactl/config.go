package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/serve"
)

func (a *app) config() *cobra.Command {
	check := a.Command("config check", func(c *cobra.Command, _ []string) error {
		cfg, err := a.Load(c.Context())
		if err != nil {
			return err
		}
		if cfg.Serve.Configured {
			if err := serve.Check(cfg); err != nil {
				return &cli.Coded{Code: cli.ExitConfig, Err: err}
			}
		}
		log := a.Logger() // valid settings that are probably not intended
		for _, c := range cfg.Credentials {
			if _, err := c.APIKey.Key(); err != nil {
				log.Warn("no API key: this credential cannot fetch anything", "credential", c.Name,
					"error", err)
			}
			c.APIKey.WarnExposed(log)
			for _, text := range c.PartsAboveWhole() {
				log.Warn(text, "credential", c.Name)
			}
		}
		config.FileSecret(cfg.Serve.TokenFile, a.Getenv).WarnExposed(log)
		cfg.Notify.Secret.WarnExposed(log)
		if a.Output == "table" {
			a.Output = "yaml" // people read it best as they write it
		}
		return a.Print(shownConfig(cfg), nil)
	})
	schema := a.Command("config schema", func(*cobra.Command, []string) error {
		_, err := a.Stdout.Write(quotabudget.Schema)
		return err
	})
	key := keyFile
	initial := a.Command("config init", func(*cobra.Command, []string) error {
		return a.initialise(key)
	})
	cli.Flags(initial.Flags(), "key-file", &key)
	return a.Command("config", nil, check, schema, initial)
}

// initial is the configuration that init writes, without the place of the key.
//
//go:embed init.yaml
var initial string

const (
	initialFile = "quota.yaml"
	keyFile     = "/etc/quota/key"
)

func (a *app) initialise(key string) error {
	switch {
	case a.Config != "":
		return cli.Usagef("init writes to the current folder: --config names a file to read")
	case key == "" || strings.ContainsAny(key, "\r\n"):
		return cli.Usagef("--key-file %q is not the name of a file", key)
	case quota.LooksSecret(key):
		return cli.Usagef("--key-file takes the name of a file, not the key itself")
	}
	quoted, err := json.Marshal(key) // also valid YAML
	if err != nil {
		return err
	}
	text := initial
	if key != keyFile {
		text = strings.Replace(text, "{file: "+keyFile+"}", "{file: "+string(quoted)+"}", 1)
	}
	if err := create(initialFile, text); err != nil {
		return err
	}
	path, err := filepath.Abs(initialFile)
	if err != nil {
		return err
	}
	find := "  export QUOTA_CONFIG=" + path + "\n"
	if path == config.SystemFile {
		find = ""
	}
	return a.Print(object{"file", path, "key_file", key}, func(s cli.Screen) {
		fmt.Fprintf(s.W, `wrote %s

next:
  sudo install -d -o "$USER" -m 700 /var/lib/quota
  put the API key, alone, into %s, readable only for the user that runs the programs
%s  quotactl config check
  ingestor once --region US --pages 1
`, path, key, find)
	})
}

// create writes a new file. It removes a file that it could not write completely.
func create(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return cli.Hint(fmt.Errorf("%s already exists: it is not overwritten", path),
			"quotactl config check prints its settings; move it away to write a new one")
	}
	if err != nil {
		return cli.Hint(err, "the current folder must be writable; for /etc/quota use sudo")
	}
	_, err = file.WriteString(text)
	// Root's umask may be strict, and the programs run as another user.
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
