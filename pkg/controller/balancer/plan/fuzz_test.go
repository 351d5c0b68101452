// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// FuzzNew wants a plan, and a status, for whatever may have been stored.
func FuzzNew(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"spec":{"targets":[{"name":"a"},{"name":"b"}],"policy":{"policyName":"even"},"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"spec":{"replicas":7,"targets":[{"name":"a","minReplicas":1},{"name":"b","maxReplicas":"50%"}],"policy":{"policyName":"proportional","proportions":{"targetProportions":{"a":1,"b":2}}},"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"spec":{"replicas":2147483647,"targets":[{"name":"a","minReplicas":"100%","maxReplicas":0}],"policy":{"policyName":"tiers","tiers":[{"targets":["a","a"],"proportions":{"b":-1}}],"fallback":{"startupTimeout":"-1h","probe":-1,"recoveryDelaySeconds":2147483647}},"transition":{"maxSurge":-1},"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"status":{"targets":[{"name":"a","replicas":-5,"ready":-1,"blocks":-2147483648,"blockedSince":"0001-01-01T00:00:00Z"}]}}`,
	} {
		for _, shape := range []uint8{0, 3} { // all targets are known, and two are absent
			f.Add([]byte(text), shape)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, shape uint8) {
		b := &v1alpha1.Balancer{}
		if json.Unmarshal(text, b) != nil {
			return
		}
		v := View{Now: noon, Balancer: b}
		for i, spec := range b.Spec.Targets {
			tt := target{Spec: spec, Known: shape>>(i%8)&1 == 0, Absent: shape>>(i%8)&1 != 0}
			pods(i%9, i%3)(&tt)
			v.Targets = append(v.Targets, tt)
		}
		p := New(v)
		var o Outcome
		for _, s := range p.Shares {
			if s.Next < 0 && p.Stop == (Hold{}) {
				t.Fatalf("target %s is asked for %d", s.Name, s.Next)
			}
			o = append(o, s.Next)
		}
		status(v, p, o)
	})
}
