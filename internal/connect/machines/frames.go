// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// framer divides the stream of a watch into events. The framer of a generated client parses each
// event for that.
type framer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (framer) NewFrameReader(stream io.ReadCloser) io.ReadCloser {
	return &frameReader{ReadCloser: stream}
}

// leastRead is how much a frameReader reads at once at least.
const leastRead = 512

type frameReader struct {
	io.ReadCloser
	// buffer contains the present frame and what was read behind it.
	buffer []byte
	// The caller has taken a part of the frame, which ends at end.
	taken, end int
}

// Read returns the next frame, or as much of it as there is room for and io.ErrShortBuffer.
func (f *frameReader) Read(into []byte) (int, error) {
	if f.taken == f.end {
		if err := f.readFrame(); err != nil {
			return 0, err
		}
	}
	n := copy(into, f.buffer[f.taken:f.end])
	if f.taken += n; f.taken < f.end {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// readFrame reads until the buffer contains a frame.
func (f *frameReader) readFrame() error {
	f.buffer = append(f.buffer[:0], f.buffer[f.end:]...)
	f.taken, f.end = 0, 0
	var object objectScanner
	for scanned := 0; ; {
		f.buffer = bytes.TrimLeft(f.buffer, " \t\r\n")
		if len(f.buffer) > 0 && f.buffer[0] != '{' {
			return fmt.Errorf("a watch event begins with %q", f.buffer[0])
		}
		n, ended := object.scan(f.buffer[scanned:])
		if scanned += n; ended {
			f.end = scanned
			return nil
		}
		if err := f.readMore(); err != nil {
			return err
		}
	}
}

// readMore appends to the buffer what the stream has.
func (f *frameReader) readMore() error {
	f.buffer = slices.Grow(f.buffer, leastRead)
	n, err := f.ReadCloser.Read(f.buffer[len(f.buffer):cap(f.buffer)])
	f.buffer = f.buffer[:len(f.buffer)+n]
	switch {
	case n > 0: // an error comes again with the next read
		return nil
	case err == io.EOF && len(f.buffer) > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}

// objectScanner finds the end of a JSON object, which may arrive in pieces.
type objectScanner struct {
	depth           int
	inText, escaped bool
}

// scan returns how many bytes of data belong to the object, and whether it ends with them. The
// first byte of the object must be its brace.
func (s *objectScanner) scan(data []byte) (n int, ended bool) {
	for i, b := range data {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inText:
			s.escaped, s.inText = b == '\\', b != '"'
		case b == '"':
			s.inText = true
		case b == '{':
			s.depth++
		case b == '}':
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(data), false
}
