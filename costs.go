// Package quotabudget holds the files that ship inside the programs.
package quotabudget

import _ "embed"

//go:embed costs.yaml
var costs string

// Costs is the text of costs.yaml as it ships: what the upstream bills. internal/costs reads it.
func Costs() []byte { return []byte(costs) }
