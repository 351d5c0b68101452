// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Plans for node groups")
}

// Keys of annotations, each followed by = and its value.
const (
	trigger  = machineutils.TriggerDeletionByMCM + "="
	scaled   = machineutils.LastDeploymentReplicaChangeByScalerTime + "="
	excess   = v1alpha1.AppliedExcessAnnotation + "="
	unsplit  = v1alpha1.AppliedReplicasAnnotation + "="
	balanced = v1alpha1.BalanceAnnotation + "="
	// included is a reserve of two that replicas include, of seven.
	included = excess + "2,max=9,counted=2,replicas=7"
)

// spread reports whether machines that stay are of two MachineSets.
func spread(members []Member) bool {
	staying := map[string]int{}
	for _, m := range members {
		if !m.Leaving() {
			staying[m.Set]++
		}
	}
	return len(staying) > 1
}

func going(list string) map[string]bool {
	all := map[string]bool{}
	for _, name := range list {
		all[string(name)] = true
	}
	return all
}

// inWords describes a change in a few words: replicas, and what the annotations contain.
func inWords(c Change) string {
	words := []string{fmt.Sprintf("%d>%d", c.From, c.To)}
	if c.From != c.To && c.To != c.Replicas {
		words = append(words, fmt.Sprintf("of %d", c.Replicas))
	}
	for _, key := range []string{trigger, scaled, unsplit} {
		if value, ok := c.Annotations[strings.TrimSuffix(key, "=")]; ok {
			words = append(words, value)
		}
	}
	return strings.Join(words, " ")
}

// carriedOut is a MachineDeployment after a change.
func carriedOut(d *v1alpha1.MachineDeployment, c Change) *v1alpha1.MachineDeployment {
	d = d.DeepCopy()
	if c.From != c.To {
		if d.Spec.Replicas != c.Replicas {
			d.Generation++
		}
		d.Spec.Replicas = c.Replicas
	}
	for key, value := range c.Annotations {
		if d.Annotations[key] = value; value == "" {
			delete(d.Annotations, key)
		}
	}
	return d
}
