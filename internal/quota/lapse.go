package quota

// Lapse is what becomes of a reservation that nobody settles.
type Lapse string

const (
	// LapseRelease gives the units back, as for those that a person set aside.
	LapseRelease Lapse = "release"
	// LapseCharge makes entries of them, with the reservation's ID and labels, stamped when it
	// expires: a call that was sent has usually been billed, whatever became of the caller. Units
	// that are limited by concurrent windows alone are given back all the same.
	LapseCharge Lapse = "charge"
)
