// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinedeployment_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

// randomInPlace is a random story about updates in place, without scaling (D7) and without machines that
// are created for a MachineSet that is the newest again (I2).
func randomInPlace(seed uint64) oracle.Story { return oracle.Random("inplace", seed, "D7", "I2") }

// others matches stories that show weaknesses of stock all the same: they scale together with a new template
// (D7), or people select a machine before the first new one has booted, for which stock waits (I5).
var others = regexp.MustCompile(`\{"spec":\{"replicas"|within .*"class".*selected-for-update`)

// leftOver is the label that a MachineSet keeps in stock when it is the newest again (I2).
const leftOver = "metadata.labels[" + machineutils.LabelKeyMachineSetScaleUpDisabled + "]"

// progress is why a rollout is under way.
const progress = "status.conditions[Progressing].reason"

// forgive makes two endings equal in what is chance or on purpose: that label; progress while the first new
// machine boots, when stock writes no status (I5); and which MachineSet deletes the machine that is too many
// because of surge: if it is updated, too, that depends on whether it has moved by then.
func forgive(stock, here oracle.Ending) {
	for i := range min(len(stock.Rests), len(here.Rests)) {
		left, right := stock.Rests[i].State, here.Rests[i].State
		for name, o := range left {
			if right[name] != nil && right[name][leftOver] == "" {
				delete(o, leftOver)
			}
			if o[progress] == "FoundNewMachineSet" && right[name][progress] == "MachineSetUpdated" {
				o[progress] = "MachineSetUpdated"
			}
		}
		for _, state := range []oracle.State{left, right} {
			for name, o := range state {
				if delete(o, "Normal SuccessfulDelete"); len(o) == 0 {
					delete(state, name)
				}
			}
		}
	}
}

// differsInPlace returns how a story ends otherwise than all of many plays of stock: chance decides there
// which machines are updated, in each rollout anew (I8). It is empty if it does not, or if stock does not
// come to rest because it creates no machine (I2).
func differsInPlace(story oracle.Story) (differences string) {
	here := oracle.Play(suite, story, ours)
	for range 50 {
		stock := oracle.Play(suite, story, oracle.Stock)
		forgive(stock, here)
		worse := here.Seen.Worse(stock.Seen)
		switch all := oracle.Compare(stock, here); {
		case len(all) == 0 && len(worse) == 0, stock.Rests[len(stock.Rests)-1].Unrest != "":
			return ""
		case differences == "":
			differences = fmt.Sprintln(story, all, worse)
		}
	}
	return differences
}

var _ = Describe("Beside stock", Label("oracle"), func() {
	It("it ends the same in random stories about updates in place", func() {
		played := 0
		for _, seed := range seeds(3) {
			if story := randomInPlace(seed); !others.MatchString(story.String()) {
				Expect(differsInPlace(story)).To(BeEmpty())
				played++
			}
		}
		AddReportEntry("stories", played)
	})

	It("I3, I6: updates in place end in bad weather, and no machine too many is created", func() {
		played := 0
		for _, seed := range seeds(3) {
			story := oracle.RandomInWeather("inplace", seed, "I2")
			text := story.String()
			if strings.Contains(text, "Manual") || strings.Contains(text, "paused") {
				continue
			}
			played++
			here := oracle.Play(suite, story, ours)
			for _, rest := range here.Rests {
				pool := rest.State[oracle.Deployment+" pool"]
				Expect(rest.Unrest).To(BeEmpty(), text)
				for _, count := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
					Expect(pool["status."+count]).To(Equal(pool["spec.replicas"]), "%s\n%s after %s", text, count, rest.Act)
				}
			}
			Expect(here.Seen.Breaches[oracle.Over]).To(BeZero(), text)
		}
		AddReportEntry("stories", played)
	})
})
