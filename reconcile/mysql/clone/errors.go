package clone

import (
	"errors"
	"fmt"
)

// errTooManyClones is ER_CLONE_TOO_MANY_CONCURRENT_CLONES.
const errTooManyClones = 3634

// DonorError is an error that the donor returned. Number is MySQL's error number (manual, "Server Error Message Reference").
type DonorError struct {
	Number  int
	Message string
}

func (e *DonorError) Error() string { return fmt.Sprintf("donor: error %d: %s", e.Number, e.Message) }

// IsBusy reports whether the donor serves another copy; a later retry helps.
func IsBusy(err error) bool {
	var donor *DonorError
	return errors.As(err, &donor) && donor.Number == errTooManyClones
}

// UnsupportedError says which file of the donor cannot be copied, and why.
type UnsupportedError struct{ File, Reason string }

func (e *UnsupportedError) Error() string { return fmt.Sprintf("copy file %q: %s", e.File, e.Reason) }

// protocolError is an answer that this package does not know. It ends the copy, because the unknown answer could be data.
func protocolError(format string, values ...any) error {
	return fmt.Errorf("unexpected answer from the donor: "+format, values...)
}
