// Package quotabudget holds the files that ship inside the programs.
package quotabudget

import (
	"embed"
	"io/fs"
)

//go:embed costs.yaml costs/*.yaml
var costs embed.FS

// Costs is the price lists as they ship, costs.yaml and what it names: what each upstream bills.
// internal/costs reads them.
func Costs() fs.FS { return costs }

// CostsSchema is the JSON Schema of price lists. internal/costs reads them by it, and editors can.
//
//go:embed costs/schema.json
var CostsSchema []byte

// Schema is the JSON Schema of quota.yaml. internal/config reads the file by it, and editors can.
//
//go:embed quota.schema.json
var Schema []byte
