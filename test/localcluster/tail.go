// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"io"
	"os"
)

const (
	tailLines = 12
	tailBytes = 16 << 10
)

// logTail returns the last lines of a log, to be shown in an error.
func logTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer file.Close()
	if end, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, end-tailBytes), io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(file, tailBytes))
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
