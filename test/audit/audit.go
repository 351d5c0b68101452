// SPDX-License-Identifier: Apache-2.0

// Package audit reads the audit log of an API server, for tests of who has written what.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is a request that the API server has answered.
type Request struct {
	User, Verb                   string
	Group, Resource, Subresource string
	Namespace, Name              string
	Code                         int
	// URI contains the selectors of a list.
	URI string
	// Answered is when the API server answered it.
	Answered time.Time
}

// Writes reports whether it would change anything that matters; Leases and Events do not.
func (r Request) Writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		r.Resource != "" && r.Resource != "leases" && r.Resource != "events"
}

// Refused reports whether it changed nothing.
func (r Request) Refused() bool { return r.Code >= 400 }

// Log is an audit log that may still grow.
type Log struct {
	file  *os.File
	lines *bufio.Reader
	begun []byte // an incomplete line at the end
}

// Open opens a log of one JSON line per event.
func Open(path string) (*Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &Log{file: file, lines: bufio.NewReader(file)}, nil
}

// Close closes the log.
func (l *Log) Close() error { return l.file.Close() }

// Read returns the requests that keep selects and that were answered since the last Read, or since
// the log began.
func (l *Log) Read(keep func(Request) bool) ([]Request, error) {
	var kept []Request
	for {
		r, err := l.nextEvent()
		switch {
		case errors.Is(err, io.EOF):
			return kept, nil
		case err != nil:
			return nil, fmt.Errorf("read audit log: %w", err)
		case r != nil && keep(*r):
			kept = append(kept, *r)
		}
	}
}

// nextEvent returns nil for an event that is not an answer. An incomplete line is kept for the next
// call.
func (l *Log) nextEvent() (*Request, error) {
	part, err := l.lines.ReadBytes('\n')
	l.begun = append(l.begun, part...)
	if err != nil {
		return nil, err
	}
	var e auditv1.Event
	err = json.Unmarshal(l.begun, &e)
	l.begun = l.begun[:0]
	if err != nil || e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil {
		return nil, err
	}
	r := &Request{
		User: e.User.Username, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		URI: e.RequestURI, Answered: e.StageTimestamp.Time,
	}
	if e.ResponseStatus != nil {
		r.Code = int(e.ResponseStatus.Code)
	}
	return r, nil
}
