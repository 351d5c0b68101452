// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Plans for Reserves")
}

// spread is what a decision asks for where, as in "a=2 b=1*", where * marks one that is blocked.
func spread(d Decision) string {
	var words []string
	for _, p := range d.Parts {
		mark := ""
		if p.Blocked {
			mark = "*"
		}
		words = append(words, fmt.Sprintf("%s=%d%s", p.Deployment.Name, p.Machines, mark))
	}
	return strings.Join(words, " ")
}

// after is a view in which a plan has been carried out, and machines are as they are requested, but for those of some MachineDeployments.
func after(v View, out ...string) View {
	p := New(v)
	next := View{Now: v.Now}
	for _, d := range p.Decisions {
		r := d.Reserve.DeepCopy()
		r.Status = NewStatus(d, v.Now)
		if known := reason.Reserve["Ready"].Find(d.Reason); known.Meaning == "" {
			panic("no table explains " + d.Reason)
		}
		next.Reserves = append(next.Reserves, r)
	}
	for _, pool := range v.Pools {
		pool.Deployment = pool.Deployment.DeepCopy()
		for _, r := range p.Requests {
			if r.Deployment.Name == pool.Deployment.Name {
				pool.Deployment.Annotations[machine.RequestedExcessAnnotation] = r.Text
				if r.Text == "" {
					delete(pool.Deployment.Annotations, machine.RequestedExcessAnnotation)
				}
			}
		}
		Work(&pool, strings.Contains(strings.Join(out, " "), pool.Deployment.Name))
		next.Pools = append(next.Pools, pool)
	}
	return next
}
