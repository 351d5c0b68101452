// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// reserves shows each Reserve in a line.
func (s Style) reserves(v overview.Overview) []string {
	if len(v.Reserves) == 0 {
		return nil
	}
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
