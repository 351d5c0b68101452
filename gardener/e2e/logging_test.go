// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gardener/gardener/pkg/component/extensions"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// unparsed are lines of the manager's log that the parser which Gardener has for this container does not take apart.
func (p *pod) unparsed() []string {
	GinkgoHelper()
	parser := must(machinecontrollermanager.CentralLoggingConfiguration()).Parsers[0].Spec.Regex
	pattern := regexp.MustCompile(parser.Regex)
	return linesWithout(p.process, func(line []byte) bool {
		match := pattern.FindSubmatch(line)
		if match == nil {
			return false
		}
		_, err := time.Parse("0102 15:04:05.000000", string(match[pattern.SubexpIndex("time")]))
		return err == nil
	})
}

// unparsedByExtensions are lines of a log that the parser which Gardener has for extensions does not take apart.
func unparsedByExtensions(process *localcluster.Process) []string {
	GinkgoHelper()
	configuration := must(extensions.CentralLoggingConfiguration())
	parser := configuration.Parsers[0].Spec.JSON
	return linesWithout(process, func(line []byte) bool {
		var fields map[string]any
		if json.Unmarshal(line, &fields) != nil {
			return false
		}
		for _, key := range []string{parser.TimeKey, "level", "msg"} {
			if fields[key] == nil {
				return false
			}
		}
		return true
	})
}

func linesWithout(process *localcluster.Process, isParsed func(line []byte) bool) (lines []string) {
	GinkgoHelper()
	text := must(os.ReadFile(process.Log()))
	Expect(text).NotTo(BeEmpty())
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSuffix(line, []byte("\n")); !isParsed(line) {
			lines = append(lines, string(line))
		}
	}
	return lines
}
