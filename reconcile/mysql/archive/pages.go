package archive

import "errors"

// errEndless is about a listing that would never end, or whose end nobody would see: neither tells what is there.
var errEndless = errors.New("the listing has no end: the store goes on where it has been before, or does not say where")

// places are those where a store has said that its listing goes on.
type places map[string]bool

// next notes where a listing goes on, if there is more. A place where it has been is errEndless, and so is none.
func (p places) next(more bool, place string) error {
	if !more {
		return nil
	}
	if place == "" || p[place] {
		return errEndless
	}
	p[place] = true
	return nil
}
