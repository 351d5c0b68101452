// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/audit"
)

// listening is how long the noise of a process at rest is measured.
const listening = time.Minute

// noise is what the process wrote to its log, and was refused by the API servers, while it was measured.
type noise struct {
	lines, errors int
	// memory is what the process has to itself in the end, in KiB, and cpu what it computed.
	memory int
	cpu    time.Duration
	// refused counts refusals for want of a right, by verb and resource.
	refused map[string]int
}

// listen measures the process that runs for a minute.
func (s *shoot) listen(ctx context.Context) noise {
	GinkgoHelper()
	pods := s.kubelet.running()
	Expect(pods).To(HaveLen(1))
	path := pods[0].process.Log()
	begin := len(must(os.ReadFile(path)))
	logs := []*audit.Log{must(audit.Open(seedCluster.AuditLog())), must(audit.Open(targetCluster.AuditLog()))}
	for _, log := range logs {
		defer log.Close()
		s.refused(log)
	}
	_, before := usage(pods[0].process.PID())
	select {
	case <-ctx.Done():
	case <-time.After(listening):
	}
	memory, after := usage(pods[0].process.PID())
	n := noise{memory: memory, cpu: after - before, refused: map[string]int{}}
	for _, log := range logs {
		for what, count := range s.refused(log) {
			n.refused[what] += count
		}
	}
	for line := range bytes.Lines(must(os.ReadFile(path))[begin:]) {
		n.lines++
		if line[0] == 'E' {
			n.errors++
		}
	}
	return n
}

// usage is the memory that a process shares with no file, in KiB, and the CPU time that it has used.
func usage(pid int) (memory int, cpu time.Duration) {
	GinkgoHelper()
	for line := range strings.Lines(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))))) {
		if value, found := strings.CutPrefix(line, "RssAnon:"); found {
			memory = must(strconv.Atoi(strings.Fields(value)[0]))
		}
	}
	// After the name, which may hold blanks, come the state and eleven fields, then user and system time in hundredths.
	_, stat, _ := strings.Cut(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))), ") ")
	fields := strings.Fields(stat)
	return memory, time.Duration(must(strconv.Atoi(fields[11]))+must(strconv.Atoi(fields[12]))) * 10 * time.Millisecond
}

// refused are the requests of the manager's accounts since the last look that lacked a right.
func (s *shoot) refused(log *audit.Log) map[string]int {
	GinkgoHelper()
	requests, err := log.Read(func(r audit.Request) bool {
		return r.Code == http.StatusForbidden && (strings.HasSuffix(r.User, ":machine-controller-manager") || strings.HasSuffix(r.User, ":cluster-autoscaler"))
	})
	Expect(err).NotTo(HaveOccurred())
	count := map[string]int{}
	for _, r := range requests {
		count[r.Verb+" "+r.Resource+"."+r.Group]++
	}
	return count
}

func (n noise) String() string {
	return fmt.Sprintf("in %v at rest %d lines of log, %d of them errors; %d KiB of its own, %v of CPU; refused: %s", listening, n.lines, n.errors, n.memory, n.cpu, n.refusals())
}

func (n noise) refusals() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(n.refused)) {
		parts = append(parts, fmt.Sprintf("%s %d times", what, n.refused[what]))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// asksInVain is an error where a process at rest asks for what it may not have, again and again.
func (n noise) asksInVain() error {
	if len(n.refused) == 0 {
		return nil
	}
	return errors.New(n.refusals())
}
