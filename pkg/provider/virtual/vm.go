// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RecordLabel is on the ConfigMaps that record machines.
	RecordLabel = "evenkeel.machine.sapcloud.io/virtual-machine"
	// recordPrefix and the machine's name are the name of its record.
	recordPrefix = "virtual-machine-"
	recordKey    = "machine.json"
	// scheme of provider ids, which also tells our Nodes from others.
	scheme = "virtual:///"
)

// VM is one machine as recorded.
type VM struct {
	Name     string   `json:"name"`
	Class    string   `json:"class"`
	Hardware Hardware `json:"hardware"`
	// Created and BootDelay decide when the boot is over, but for faults.
	Created   time.Time     `json:"created"`
	BootDelay time.Duration `json:"bootDelay"` // nanoseconds
	// Dead for good.
	Dead bool `json:"dead,omitempty"`
	// Registered: the Node was made, by us or by a process before. Not in the record: the Node tells.
	Registered bool `json:"-"`
}

// ProviderID of the machine; no other has it, nor one of the same name before or after.
func (v VM) ProviderID() string {
	return scheme + v.Hardware.Zone + "/" + v.Name + "/" + strconv.FormatInt(v.Created.UnixNano(), 36)
}

// registersAt returns when the Node registers, if nothing changes.
func (v VM) registersAt(f Fault) time.Time { return v.Created.Add(v.BootDelay + f.ExtraBootDelay) }

// ownsNode reports whether the Node belongs to this machine.
func (v VM) ownsNode(node *corev1.Node) bool {
	return node.Name == v.Name && node.Spec.ProviderID == v.ProviderID()
}

func recordName(machine string) string { return recordPrefix + machine }

// recordOf is the ConfigMap that remembers the machine.
func recordOf(v VM, namespace string) (*corev1.ConfigMap, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode machine %s: %w", v.Name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: recordName(v.Name), Namespace: namespace, Labels: map[string]string{RecordLabel: "true"},
		},
		Data: map[string]string{recordKey: string(raw)},
	}, nil
}

// fromRecord reads what recordOf wrote.
func fromRecord(config *corev1.ConfigMap) (VM, error) {
	var v VM
	if err := strictly([]byte(config.Data[recordKey]), &v); err != nil {
		return VM{}, fmt.Errorf("read machine record %s: %w", config.Name, err)
	}
	if recordName(v.Name) != config.Name {
		return VM{}, fmt.Errorf("read machine record %s: it is about machine %q", config.Name, v.Name)
	}
	return v, nil
}
