// Package lua holds the scripts that decide and record inside Redis.
package lua

import _ "embed"

//go:embed bucket.lua
var bucket string

//go:embed holds.lua
var holds string

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

//go:embed sums.lua
var sums string

//go:embed mend.lua
var mend string

//go:embed claim.lua
var claim string

// Each script is one source: what it knows of a bucket and of
// reservations, then itself. Its header names its keys, arguments and reply.

// Charge decides and records a charge, a draw or a reservation.
func Charge() string { return bucket + holds + charge }

// Commit settles a reservation.
func Commit() string { return bucket + holds + commit }

// Release gives back a reservation.
func Release() string { return bucket + holds + release }

// Cancel takes back a charge.
func Cancel() string { return bucket + holds + cancel }

// Suspend closes or opens a bucket.
func Suspend() string { return bucket + holds + suspend }

// Usage reports the standing of buckets.
func Usage() string { return bucket + holds + usage }

// Sums adds up entries that are not in the sums yet.
func Sums() string { return bucket + holds + sums }

// Mend writes a bucket anew after a check.
func Mend() string { return bucket + holds + mend }

// Claim leases a piece of work. It knows nothing of buckets.
func Claim() string { return claim }
