package jinja

// frame holds the variables of one running function. A nil variable is missing.
type frame struct {
	vars  []Value
	outer *frame
}

func newFrame(l *layout, outer *frame) *frame {
	return &frame{make([]Value, len(l.slots)), outer}
}

func (f *frame) get(at ref) Value {
	for range at.up {
		f = f.outer
	}
	return f.vars[at.slot]
}

// set changes a variable; code only ever sets those of its own function.
func (f *frame) set(at ref, v Value) { f.vars[at.slot] = v }

// enterScope sets the variables of a scope to what they start as.
func (r *run) enterScope(f *frame, entries []entry) error {
	for _, e := range entries {
		switch e.kind {
		case fromOuter:
			f.vars[e.slot] = f.get(e.ref)
		case fromContext:
			v, err := r.lookup(e.name)
			if err != nil {
				return err
			}
			f.vars[e.slot] = v
		case fromNowhere:
			f.vars[e.slot] = nil
		}
	}
	return r.step(len(entries))
}

// leaveScope makes them missing again, for closures that outlive the scope.
func leaveScope(f *frame, entries []entry) {
	for _, e := range entries {
		f.vars[e.slot] = nil
	}
}

// lookup reads a name of the context: the caller's variables, then the globals.
func (r *run) lookup(name string) (Value, error) {
	if v, ok := r.vars.Get(name); ok {
		return v, nil
	}
	return r.lib.globals[name], nil
}
