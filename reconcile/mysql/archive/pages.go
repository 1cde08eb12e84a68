package archive

import "errors"

// errEndless means that a listing would never end, or that its end cannot be recognized. The content of the folder is then unknown.
var errEndless = errors.New("the listing has no end: the store sends a continuation token again, or sends none")

// seenTokens are the continuation tokens that a store has sent for a listing.
type seenTokens map[string]bool

// next records the continuation token, if more is true. A token that is empty, or that the store has sent before, is errEndless.
func (p seenTokens) next(more bool, place string) error {
	if !more {
		return nil
	}
	if place == "" || p[place] {
		return errEndless
	}
	p[place] = true
	return nil
}
