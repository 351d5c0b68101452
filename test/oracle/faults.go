// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Faults are those that the oracle sees.
var Faults = []Fault{
	{"another victim than the first", "a set shrinks by priority, then by age", func(w *write) {
		if all := w.siblings(); w.is("DELETE machines") && len(all) > 0 {
			w.Name, _ = metadata(all[len(all)-1])["name"].(string)
		}
	}},
	{"priorities are ignored", "a set shrinks by priority, then by age", func(w *write) {
		if w.is("DELETE machines") {
			w.Name = oldest(w.siblings())
		}
	}},
	{"replicas are not recorded", "records of replicas", func(w *write) {
		if w.is("PUT machinesets") {
			delete(w.object("metadata", "annotations"), "deployment.kubernetes.io/desired-replicas")
		}
	}},
	{"annotations are not copied", "annotations are copied to the new set", func(w *write) {
		if w.is("PUT machinesets") || w.is("POST machinesets") {
			delete(w.object("metadata", "annotations"), "owner")
		}
	}},
	{"a condition has another reason", "available and not", func(w *write) {
		if w.is("PUT machinedeployments status") {
			w.conditions(func(c map[string]any) {
				if c["reason"] == "MinimumReplicasUnavailable" {
					c["reason"] = "MinimumReplicasAvailable"
				}
			})
		}
	}},
	{"the finalizer is forgotten", "a set grows and shrinks", func(w *write) {
		if w.is("PUT machinesets") {
			delete(w.object("metadata"), "finalizers")
		}
	}},
	{"old nodes get no taint", "a rollout that is stuck marks old nodes", func(w *write) {
		if w.is("PUT nodes") {
			delete(w.object("spec"), "taints")
		}
	}},
	{"nodes keep the annotation of a rollout", "going back before the end", func(w *write) {
		if meta := w.object("metadata"); w.is("PUT nodes") && w.object("metadata", "annotations")[scaleDownDisabled] == nil {
			meta["annotations"] = map[string]any{scaleDownDisabled: "true"}
		}
	}},
	{"replicas in the status are one too many", "a set grows and shrinks", func(w *write) {
		if replicas, ok := w.object("status")["replicas"].(float64); ok && w.is("PUT machinesets status") {
			w.object("status")["replicas"] = replicas + 1
		}
	}},
	{"one machine too many for a moment", "a set grows and shrinks", func(w *write) {
		if w.is("POST machines") && !w.s.once {
			w.s.once = true
			w.send()
		}
	}},
	{"the wrong owner", "a set grows and shrinks", func(w *write) {
		if owners, ok := w.object("metadata")["ownerReferences"].([]any); ok && w.is("POST machines") {
			w.object("metadata")["ownerReferences"] = append(owners, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "x"})
		}
	}},
	{"the label of the hash is missing", "a deployment grows and shrinks", func(w *write) {
		if w.is("POST machinesets") {
			delete(w.object("metadata", "labels"), hashLabel)
		}
	}},
	{"the revision is wrong", "revisions", func(w *write) {
		if w.is("PUT machinedeployments") && w.object("metadata", "annotations")["deployment.kubernetes.io/revision"] == "3" {
			w.object("metadata", "annotations")["deployment.kubernetes.io/revision"] = "2"
		}
	}},
	{"a deleted machine is not set Terminating", "a set grows and shrinks", func(w *write) {
		w.Lost = w.is("PUT machines status") && w.object("status", "currentStatus")["phase"] == "Terminating"
	}},
	{"a pause is not shown", "pause and resume", func(w *write) {
		if w.is("PUT machinedeployments status") {
			w.conditions(func(c map[string]any) {
				if c["reason"] == "DeploymentPaused" {
					c["reason"], c["status"] = "NewMachineSetAvailable", "True"
				}
			})
		}
	}},
	{"a named machine gets no time", "a named machine is spared when replicas come back", func(w *write) {
		if w.is("PUT machines") {
			delete(w.object("metadata", "annotations"), markedTime)
		}
	}},
	{"a failed machine is not preserved", "one failed machine is preserved, the next is not", func(w *write) {
		if w.is("PUT machines") {
			delete(w.object("metadata", "annotations"), preserving)
		}
	}},
	{"machines keep their old node template", "what is synced without a rollout", func(w *write) {
		if w.is("PUT machines") {
			delete(w.object("spec"), "nodeTemplate")
		}
	}},
	{"old sets beyond the limit stay", "old sets are kept up to a limit", func(w *write) {
		w.Lost = w.is("DELETE machinesets")
	}},
	{"rollback does not restore the timeouts", "back to a named revision", func(w *write) {
		if w.is("PUT machinedeployments") {
			delete(w.object("spec", "template", "spec"), "drainTimeout")
		}
	}},
	{"only a timer makes it go on", "a deployment grows and shrinks", func(w *write) {
		if w.is("PUT machinesets") && w.object("spec")["replicas"] == 5.0 {
			if w.s.since.IsZero() {
				w.s.since = time.Now()
			}
			w.Lost = time.Since(w.s.since) < 5*time.Minute
		}
	}},
	{"replicas rest one below", "a deployment grows and shrinks", func(w *write) {
		if replicas, ok := w.object("spec")["replicas"].(float64); ok && w.is("PUT machinesets") && replicas > 4 {
			w.object("spec")["replicas"] = replicas - 1
		}
	}},
	{"one machine more does not freeze a set", "exactly as many machines as freeze a set", func(w *write) {
		if labels := w.object("metadata", "labels"); w.is("PUT machinesets") && labels["freeze"] == "True" {
			w.Lost = true
		}
	}},
	{"surplus of the next age", "a set grows and shrinks", func(w *write) {
		if all := w.siblings(); w.is("DELETE machines") && len(all) > 1 && oldest(all) == w.Name {
			w.Name, _ = metadata(all[len(all)-1])["name"].(string)
		}
	}},
	{"no events", "a set grows and shrinks", func(w *write) {
		w.Lost = strings.HasSuffix(w.request.URL.Path, "/events")
	}},
	{"the most of replicas is another", "records of replicas", func(w *write) {
		if annotations := w.object("metadata", "annotations"); w.is("PUT machinesets") && annotations[maxReplicas] != nil {
			annotations[maxReplicas] = annotations["deployment.kubernetes.io/desired-replicas"]
		}
	}},
	{"the freeze label is left", "a set that is frozen by hand thaws", func(w *write) {
		if w.is("PUT machinesets") && w.object("metadata", "labels")["freeze"] == nil {
			w.object("metadata", "labels")["freeze"] = "True"
		}
	}},
	{"sets that were restored are not adopted", "a deployment adopts sets and machines that were restored", func(w *write) {
		w.Lost = w.is("PATCH machinesets")
	}},
	{"observedGeneration stands still", "a deployment grows and shrinks", func(w *write) {
		if w.is("PUT machinedeployments status") {
			w.object("status")["observedGeneration"] = 1
		}
	}},
	{"critical components are not waited for", "an update in place", func(w *write) {
		if w.is("PUT nodes") {
			delete(w.object("spec"), "taints")
		}
	}},
	{"a machine that was updated keeps its selection", "an update in place", func(w *write) {
		if labels := w.object("metadata", "labels"); w.is("PUT nodes") && labels[candidate] == nil {
			labels[candidate] = "true"
		}
	}},
}

const (
	maxReplicas       = "deployment.kubernetes.io/max-replicas"
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	candidate         = "node.machine.sapcloud.io/candidate-for-update"
)

func metadata(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	return m
}

// oldest returns the name of the machine that was created first.
func oldest(all []map[string]any) string {
	first := ""
	name := ""
	for _, m := range all {
		created, _ := metadata(m)["creationTimestamp"].(string)
		if first == "" || created < first {
			first = created
			name, _ = metadata(m)["name"].(string)
		}
	}
	return name
}

// send sends the body as it is now.
func (w *write) send() {
	raw, err := json.Marshal(runtime.DeepCopyJSON(w.Body))
	if err != nil {
		return
	}
	r := w.request.Clone(w.request.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	if response, err := w.s.inner.RoundTrip(r); err == nil {
		_ = response.Body.Close()
	}
}
