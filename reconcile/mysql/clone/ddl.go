package clone

import "fmt"

// rename is a file with its new name.
type rename struct {
	file *file
	to   string
}

// applyDDL repeats on the copy what DDL did to the donor's files during a state. The donor reports the changes file by file, not in the
// order in which they happened: tables may have swapped their names, or a new table may have the name of a dropped one. So applyDDL first
// removes files, then renames those that stay, then creates new ones.
func (r *recipient) applyDDL() error {
	known := len(r.files)
	var renames []rename
	var created []*file
	for _, desc := range r.pending {
		if int(desc.index) >= known {
			f, err := r.addCreated(desc)
			if err != nil {
				return err
			}
			if !f.gone {
				created = append(created, f)
			}
			continue
		}
		f := r.files[desc.index]
		switch {
		case desc.deleted:
			if err := r.remove(f); err != nil {
				return err
			}
		case f.gone:
			return protocolError("a change to file %q, which is gone", f.name)
		default:
			to, err := r.change(f, desc)
			if err != nil {
				return err
			}
			if to != f.name {
				renames = append(renames, rename{file: f, to: to})
			}
		}
	}
	r.pending = nil
	if err := r.renameAll(renames); err != nil {
		return err
	}
	return r.createAll(created)
}

// addCreated adds a file that DDL created to the copy. createAll checks its name. A file that is already deleted again is only counted.
func (r *recipient) addCreated(desc fileDesc) (*file, error) {
	if int(desc.index) != len(r.files) {
		return nil, protocolError("file %d (%q) after %d", desc.index, desc.name, len(r.files))
	}
	f := &file{fileDesc: desc, size: desc.size, dropped: desc.deleted, gone: desc.deleted}
	if !f.gone {
		name, err := cleanName(desc.name)
		if err != nil {
			return nil, err
		}
		if err := checkSupported(desc); err != nil {
			return nil, err
		}
		f.name = name
	}
	r.files = append(r.files, f)
	return f, nil
}

func (r *recipient) remove(f *file) error {
	if f.gone {
		return nil
	}
	f.dropped, f.gone = true, true
	delete(r.names, f.name)
	if !f.sent {
		return nil
	}
	if err := r.sink.Remove(f.name); err != nil {
		return fmt.Errorf("remove %s, which the donor dropped: %w", f.name, err)
	}
	return nil
}

// change records other changes to a file that stays, and returns its name from now on.
func (r *recipient) change(f *file, desc fileDesc) (string, error) {
	if err := checkSupported(desc); err != nil {
		return "", err
	}
	if desc.space != f.space {
		return "", protocolError("file %q becoming another tablespace (%d, was %d)", f.name, desc.space, f.space)
	}
	f.spaceFlags = desc.spaceFlags
	f.size = max(f.size, desc.size)
	if !desc.renamed {
		return f.name, nil
	}
	return cleanName(desc.name)
}

// renameAll renames files. If another file still has the new name, the file gets a temporary name first.
func (r *recipient) renameAll(renames []rename) error {
	var postponed []rename
	for _, one := range renames {
		to := one.to
		if r.names[to] {
			to = fmt.Sprintf("#renamed-%d", one.file.index)
			postponed = append(postponed, one)
		}
		if err := r.rename(one.file, to); err != nil {
			return err
		}
	}
	for _, one := range postponed {
		if err := r.rename(one.file, one.to); err != nil {
			return err
		}
	}
	return nil
}

func (r *recipient) rename(f *file, to string) error {
	if r.names[to] {
		return protocolError("file %q being renamed to %q, the name of another file", f.name, to)
	}
	if f.sent {
		if err := r.sink.Rename(f.name, to); err != nil {
			return fmt.Errorf("rename %s to %s: %w", f.name, to, err)
		}
	}
	delete(r.names, f.name)
	r.names[to] = true
	f.name = to
	return nil
}

// createAll writes the first pages of new files.
func (r *recipient) createAll(created []*file) error {
	for _, f := range created {
		if r.names[f.name] {
			return protocolError("a new file %q with the name of another file", f.name)
		}
		r.names[f.name] = true
		page, err := firstPage(f.fileDesc, r.release)
		if err != nil {
			return fmt.Errorf("create %s: %w", f.name, err)
		}
		least, err := newFileSize(f.fileDesc)
		if err != nil {
			return fmt.Errorf("create %s: %w", f.name, err)
		}
		f.size = max(f.size, least)
		if err := r.send(f, 0, page); err != nil {
			return err
		}
	}
	return nil
}
