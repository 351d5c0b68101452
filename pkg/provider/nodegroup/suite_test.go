// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// suite is what synctest wants to know; specs run while TestNodeGroup does.
var suite *testing.T

func TestNodeGroup(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Node groups")
}

const ns = "default"

// noon is when plans are made.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const noonText = "2026-03-01T12:00:00Z"

// deployment returns a MachineDeployment with this many replicas.
func deployment(bounds string, replicas int32, annotations ...string) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "pool", Namespace: ns, UID: "uid-pool", ResourceVersion: "7", Generation: 3, Annotations: map[string]string{v1alpha1.BoundsAnnotation: bounds},
	}}
	d.Spec.Replicas = replicas
	for _, pair := range annotations {
		key, value, _ := strings.Cut(pair, "=")
		d.Annotations[key] = value
	}
	return d
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

func group(bounds string, replicas int32, annotations ...string) Group {
	GinkgoHelper()
	g, err := NewGroup(deployment(bounds, replicas, annotations...))
	Expect(err).NotTo(HaveOccurred())
	return g
}

// members are named a, b, c by what the letters of a text say: S serves, R is in reserve, L leaves, T terminates, P is preserved,
// Q is preserved in reserve, O serves in an old MachineSet.
func members(text string) []Member {
	var all []Member
	for i, letter := range text {
		o := machineIn(mcm.MachineRunning)
		o.Name = string(rune('a' + i))
		m := Member{Machine: pool.Machine{Object: o, Set: "new"}}
		switch letter {
		case 'R':
			inReserve(o)
		case 'L':
			m.Gone = true
		case 'T':
			o.Status.CurrentStatus.Phase = mcm.MachineTerminating
		case 'P':
			m.Preserved = true
		case 'Q':
			inReserve(o)
			m.Preserved = true
		case 'O':
			m.Set = "old"
		}
		all = append(all, m)
	}
	return all
}

// spread reports whether machines that stay are of two MachineSets.
func spread(members []Member) bool {
	staying := map[string]int{}
	for _, m := range members {
		if !m.Leaving() {
			staying[m.Set]++
		}
	}
	return pool.Spread(nil, staying)
}

func going(list string) map[string]bool {
	all := map[string]bool{}
	for _, name := range list {
		all[string(name)] = true
	}
	return all
}

// String describes a change in a few words: replicas, and what the annotations contain.
func (c Change) String() string {
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

func code(err error) codes.Code { return status.Code(err) }

// machineIn returns a Machine in this phase.
func machineIn(phase mcm.MachinePhase, change ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: ns}}
	m.Status.CurrentStatus.Phase = phase
	for _, f := range change {
		f(m)
	}
	return m
}
