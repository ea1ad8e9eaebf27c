package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quotabudget/internal/quota"
)

// labelFlag is the value of --label, which can be repeated.
type labelFlag struct{ quota.Labels }

func bindLabels(flags *pflag.FlagSet, labels *quota.Labels) {
	*labels = quota.Labels{}
	flags.Var(labelFlag{*labels}, "label", "`NAME=VALUE` to keep with the entry; can be repeated")
}

func (l labelFlag) String() string { return "" } // no default to show

func (l labelFlag) Type() string { return "label" }

func (l labelFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || value == "" {
		return errors.New("write NAME=VALUE")
	}
	if _, again := l.Labels[name]; again {
		return fmt.Errorf("%s is given twice", name)
	}
	l.Labels[name] = value
	return nil
}

// labelText is the labels for people: "job=nightly region=BR".
func labelText(labels quota.Labels) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+labels[name])
	}
	return strings.Join(parts, " ")
}

func bindManual(flags *pflag.FlagSet, manual *bool) {
	flags.BoolVar(manual, "manual", false, "a person asks: the headroom may be used")
}
