package config

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"quotabudget"
	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/words"
)

// schema returns the JSON Schema of quota.yaml.
var schema = sync.OnceValue(func() *grammar.Schema {
	return grammar.NewSchema(quotabudget.Schema, "", grammar.Formats{
		"ledger":   ledger.CheckURL,
		"catalog":  checkCatalog,
		"endpoint": discard(costs.ParseEndpoint),
		"request": require(func(text string) bool {
			u, err := url.Parse(text)
			return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
				u.User == nil
		}, "write http:// or https:// and a host, without a password"),
		"name":          quota.CheckName,
		"no key itself": require(func(string) bool { return false }, pastedKey),
		"key variable":  checkKeyVariable,
		"key file":      require(isNoKey, pastedKey),
		"no key": require(isNoKey, "this file contains a key (not repeated here), and others can "+
			"read arguments: let the job read it from a file of its own"),
		"project": require(projectForm.MatchString,
			"must be the ID of the project, such as my-project-1234, or its number"),
		"mail": require(func(text string) bool {
			address, err := mail.ParseAddress(text)
			return err == nil && address.Address == text && !strings.HasPrefix(text, "-")
		}, "write only the address, such as ops@example.org"),
		"region":   discard(regions.Parse),
		"timezone": discard(parseZone),
		"schedule": discard(func(text string) (*schedule.Schedule, error) {
			return schedule.Parse(text, nil)
		}),
		"window": discard(func(text string) (quota.Window, error) {
			return quota.ParseWindow(text, "") // timezone: is another key
		}),
		"address":                  checkAddress,
		"network":                  discard(parseNetwork),
		"stagger":                  discard(parseStagger),
		"duration":                 grammar.Duration(time.Microsecond, maxWindow),
		"duration from 0s to 24h":  grammar.Duration(0, maxOffset),
		"duration from 1s to 1h":   grammar.Duration(time.Second, time.Hour),
		"duration from 1s to 168h": grammar.Duration(time.Second, 7*24*time.Hour),
	})
})

const (
	maxOffset = 24 * time.Hour
	maxWindow = 366 * 24 * time.Hour

	pastedKey = "this file contains a key (not repeated here): " + rotate
)

// discard turns a parser into a check.
func discard[T any](parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}

// require turns a condition into a check. The error of the check never repeats the text, which may
// be a key.
func require(holds func(string) bool, rule string) func(string) error {
	return func(text string) error {
		if !holds(text) {
			return errors.New(rule)
		}
		return nil
	}
}

func checkCatalog(text string) error {
	if !strings.HasPrefix(text, "sqlite:") {
		return errors.New("write sqlite:///path/catalog.db")
	}
	_, err := sqlite.ParseURL(text)
	return err
}

func isNoKey(text string) bool { return !quota.LooksSecret(text) }

var (
	variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// randomForm matches the random part of keys such as ghp_… and whsec_….
	randomForm = regexp.MustCompile(`[A-Za-z0-9]{20,}`)
	// projectForm matches a project's ID or number.
	projectForm = regexp.MustCompile(`^(?:[a-z0-9.-]+:)?[A-Za-z0-9_-]{1,63}$`)
)

// checkKeyVariable never repeats the text, which may be the key.
func checkKeyVariable(text string) error {
	random := randomForm.FindString(text)
	switch {
	case text == "":
		return errors.New("name the variable")
	case !variableForm.MatchString(text), random != strings.ToUpper(random) &&
		strings.ContainsAny(random, "0123456789"):
		return errors.New("must be the name of a variable, such as " + KeyVariable +
			"; if it is the key itself, " + rotate)
	}
	return nil
}

func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || name == "" {
		err = fmt.Errorf("%q is not an IANA time zone such as Europe/Berlin", words.Clip(name))
	}
	return zone, err
}

// IsAddress reports whether a text is host:port, or "", which means no address.
func IsAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return text == "" || err == nil && port != ""
}

func checkAddress(text string) error {
	if !IsAddress(text) {
		return fmt.Errorf("%q: write host:port, such as %s", words.Clip(text), DefaultListen)
	}
	return nil
}

// parseNetwork reads an address, or a network such as 10.0.0.0/8.
func parseNetwork(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if addr, failed := netip.ParseAddr(text); failed == nil && addr.Zone() == "" {
		prefix, err = addr.Prefix(addr.BitLen())
	}
	// limit.Proxies compares unmapped addresses: a dual-stack socket reports IPv4 as ::ffff:a.b.c.d.
	if err == nil && prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	switch {
	case err != nil:
		return prefix, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8",
			words.Clip(text))
	case prefix.Bits() == 0:
		return prefix, fmt.Errorf("%s trusts everybody, so anybody could make up an address: "+
			"write the addresses of your proxies", text)
	}
	return prefix.Masked(), nil
}

const staggerAuto = "auto"

func parseStagger(text string) (schedule.Stagger, error) {
	if text == staggerAuto {
		return schedule.Stagger{Auto: true}, nil
	}
	step, err := grammar.ParseDuration(text, 0, maxOffset)
	return schedule.Stagger{Step: step}, err
}
