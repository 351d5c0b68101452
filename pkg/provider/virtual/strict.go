// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// fieldError is an error with its place in a document.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

func atPath(name string, err error) error {
	if err == nil {
		return nil
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range several.Unwrap() {
			errs = append(errs, atPath(name, one))
		}
		return errors.Join(errs...)
	}
	var inner *fieldError
	if errors.As(err, &inner) {
		return &fieldError{path: name + "." + inner.path, err: inner.err}
	}
	return &fieldError{path: name, err: err}
}

// decoder is a value that decodes itself strictly.
type decoder interface {
	decode(raw []byte) error
}

// members decodes a JSON object, each member into what target returns for its name. The package
// does not use encoding/json for this, so that every error names the field, even for types with
// their own UnmarshalJSON.
func members(raw []byte, target func(name string) (any, error)) error {
	found := map[string]json.RawMessage{}
	if err := strictly(raw, &found); err != nil {
		return errors.New("must be an object: " + err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		into, err := target(name)
		if err == nil {
			err = member(found[name], into)
		}
		if err != nil {
			return atPath(name, err)
		}
	}
	return nil
}

func member(raw []byte, into any) error {
	if d, ok := into.(decoder); ok {
		return d.decode(raw)
	}
	return strictly(raw, into)
}

func strictly(raw []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// object lists the members that an object may have.
type object map[string]any

func (f object) decode(raw []byte) error {
	return members(raw, func(name string) (any, error) {
		into, known := f[name]
		if !known {
			return nil, fmt.Errorf("unknown field, known are %s", strings.Join(slices.Sorted(maps.Keys(f)), ", "))
		}
		return into, nil
	})
}

// named is an object whose member names are chosen by the user.
type named[K ~string, V any] map[K]V

func (n *named[K, V]) decode(raw []byte) error {
	*n = named[K, V]{}
	values := map[string]*V{}
	err := members(raw, func(name string) (any, error) {
		values[name] = new(V)
		return values[name], nil
	})
	for name, value := range values {
		(*n)[K(name)] = *value
	}
	return err
}
