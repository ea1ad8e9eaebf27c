// Package lua holds the scripts that decide and record inside Redis.
package lua

import _ "embed"

//go:embed bucket.lua
var bucket string

//go:embed charge.lua
var charge string

//go:embed commit.lua
var commit string

//go:embed release.lua
var release string

//go:embed cancel.lua
var cancel string

//go:embed suspend.lua
var suspend string

//go:embed usage.lua
var usage string

//go:embed mend.lua
var mend string

//go:embed claim.lua
var claim string

// Each script is one source: what it knows of a bucket, then itself. Its header names its keys, arguments and reply.

// Charge decides and records a charge, a draw or a reservation.
func Charge() string { return bucket + charge }

// Commit settles a reservation.
func Commit() string { return bucket + commit }

// Release gives back a reservation.
func Release() string { return bucket + release }

// Cancel takes back a charge.
func Cancel() string { return bucket + cancel }

// Suspend closes or opens a bucket.
func Suspend() string { return bucket + suspend }

// Usage reports the standing of buckets.
func Usage() string { return bucket + usage }

// Mend writes a bucket anew after a check.
func Mend() string { return bucket + mend }

// Claim leases a piece of work. It knows nothing of buckets.
func Claim() string { return claim }
