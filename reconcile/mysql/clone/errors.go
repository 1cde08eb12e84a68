package clone

import (
	"errors"
	"fmt"
)

// errTooManyClones is ER_CLONE_TOO_MANY_CONCURRENT_CLONES.
const errTooManyClones = 3634

// DonorError is what the donor answered instead of a copy; Number is MySQL's error number (manual, "Server Error Message
// Reference").
type DonorError struct {
	Number  int
	Message string
}

func (e *DonorError) Error() string { return fmt.Sprintf("donor: error %d: %s", e.Number, e.Message) }

// IsBusy says whether the donor gives a copy to somebody else; trying again later helps.
func IsBusy(err error) bool {
	var donor *DonorError
	return errors.As(err, &donor) && donor.Number == errTooManyClones
}

// UnsupportedError says which file of the donor's cannot be copied, and why.
type UnsupportedError struct{ File, Reason string }

func (e *UnsupportedError) Error() string { return fmt.Sprintf("copy file %q: %s", e.File, e.Reason) }

// protocolError is an answer that this package does not understand. The copy is given up: what is not understood could be data.
func protocolError(format string, values ...any) error {
	return fmt.Errorf("understand donor: "+format, values...)
}
