// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
)

// reserves shows each Reserve in a line.
func (s Style) reserves(v overview.Overview) []string {
	all := make([]conditioned, len(v.Reserves))
	for i, r := range v.Reserves {
		all[i] = conditioned{s.objectName(r.Namespace, r.Name), reserveText(r, v.At), r.Ready}
	}
	return s.conditionLines("RESERVES", all)
}

func reserveText(r overview.Reserve, now time.Time) string {
	if r.Ready.Status == "" {
		return "numbers unknown"
	}
	wanted := fmt.Sprintf("%d wanted", r.Wanted)
	if r.Next != nil {
		wanted += fmt.Sprintf(" (%d in %s)", r.Next.Wanted, duration.HumanDuration(max(0, r.Next.At.Sub(now))))
	}
	text := fmt.Sprintf("%s, %d exist, %d ready", wanted, r.Current, r.ReadyMachines)
	if len(r.Active) > 0 {
		text += "; active: " + Sanitize(strings.Join(r.Active, ", "))
	}
	if r.Ready.Status == "False" && r.Ready.Message != "" {
		text += "; " + Sanitize(r.Ready.Message)
	}
	return text
}

// buffers shows each CapacityBuffer in a line. Their namespaces are those of the target cluster, and
// are always shown.
func (s Style) buffers(v overview.Overview) []string {
	all := make([]conditioned, len(v.Buffers))
	for i, b := range v.Buffers {
		all[i] = conditioned{b.Namespace + "/" + b.Name, bufferText(b), b.Ready}
	}
	return s.conditionLines("CAPACITY BUFFERS", all)
}

// requests shows each ProvisioningRequest in a line, as buffers does.
func (s Style) requests(v overview.Overview) []string {
	all := make([]conditioned, len(v.Requests))
	for i, r := range v.Requests {
		all[i] = conditioned{r.Namespace + "/" + r.Name, requestText(r), r.Ready}
	}
	return s.conditionLines("PROVISIONING REQUESTS", all)
}

func requestText(r overview.Request) string {
	text := plural.Of(r.Pods, "pod")
	switch {
	case r.Ready.Status == "True" && r.Left != "":
		text += ", booked: " + Sanitize(r.Left)
	case r.Ready.Status == "True":
		text += ", all booked machines are used"
	case r.Ready.Message != "":
		text += ": " + Sanitize(r.Ready.Message)
	}
	return text
}

// conditioned is the line of an object with a condition Ready: its name, the reason and a text.
type conditioned struct {
	name, text string
	ready      overview.Condition
}

// conditionLines shows objects with a condition Ready, each in a line, if there are any.
func (s Style) conditionLines(title string, all []conditioned) []string {
	if len(all) == 0 {
		return nil
	}
	lines := []string{s.colorize(bold, title)}
	columns := widest(s.Width/3, mapStrings(all, func(c conditioned) string { return c.name })...)
	states := widest(s.Width/4, mapStrings(all, conditioned.state)...)
	for _, c := range all {
		hue := yellow
		if c.ready.Status == "True" {
			hue = green
		}
		head := "  " + padRight(s.cutMiddle(c.name, columns), columns) + "  "
		state := padRight(s.keepHead(c.state(), states), states)
		lines = append(lines, strings.TrimRight(head+s.colorize(hue, state)+"  "+s.keepHead(c.text, s.Width-textWidth(head)-states-2), " "))
	}
	return lines
}

func (c conditioned) state() string { return cmp.Or(Sanitize(c.ready.Reason), "not seen yet") }

func bufferText(b overview.Buffer) string {
	text := "number of chunks unknown"
	if b.Chunks >= 0 {
		text = plural.Of(b.Chunks, "chunk")
	}
	if b.Shape != "" {
		text += " like " + Sanitize(b.Shape)
	}
	if b.Dedicated != "" {
		text += ", dedicated to " + Sanitize(b.Dedicated)
	}
	if b.Ready.Status == "False" && b.Ready.Message != "" {
		text += fmt.Sprintf(": %s", Sanitize(b.Ready.Message))
	}
	return text
}
