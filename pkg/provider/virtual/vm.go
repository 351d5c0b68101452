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
	// RecordLabel marks the ConfigMaps that record machines.
	RecordLabel = "evenkeel.machine.sapcloud.io/virtual-machine"
	// recordPrefix, followed by the machine's name, is the name of its record.
	recordPrefix = "virtual-machine-"
	recordKey    = "machine.json"
	// scheme of provider ids. It also identifies our Nodes.
	scheme = "virtual:///"
)

// VM is one machine as recorded.
type VM struct {
	Name     string   `json:"name"`
	Class    string   `json:"class"`
	Hardware Hardware `json:"hardware"`
	// Created and BootDelay determine when the boot ends, apart from faults.
	Created   time.Time     `json:"created"`
	BootDelay time.Duration `json:"bootDelay"` // nanoseconds
	// Dead is permanent.
	Dead bool `json:"dead,omitempty"`
	// Registered reports whether the Node was created, by this process or an earlier one. It is not
	// recorded: the Node shows it.
	Registered bool `json:"-"`
}

// ProviderID of the machine. It is unique, even among earlier and later machines of the same name.
func (v VM) ProviderID() string {
	return scheme + v.Hardware.Zone + "/" + v.Name + "/" + strconv.FormatInt(v.Created.UnixNano(), 36)
}

// RegistersAt returns when the Node registers, if nothing changes.
func (v VM) RegistersAt(f Fault) time.Time { return v.Created.Add(v.BootDelay + f.ExtraBootDelay) }

// ownsNode reports whether the Node belongs to this machine.
func (v VM) ownsNode(node *corev1.Node) bool {
	return node.Name == v.Name && node.Spec.ProviderID == v.ProviderID()
}

func recordName(machine string) string { return recordPrefix + machine }

// recordOf returns the ConfigMap that records the machine.
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

// FromRecord parses what recordOf wrote.
func FromRecord(config *corev1.ConfigMap) (VM, error) {
	var v VM
	if err := strictly([]byte(config.Data[recordKey]), &v); err != nil {
		return VM{}, fmt.Errorf("read machine record %s: %w", config.Name, err)
	}
	if recordName(v.Name) != config.Name {
		return VM{}, fmt.Errorf("read machine record %s: it is about machine %q", config.Name, v.Name)
	}
	return v, nil
}
