// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConfigMap is the name of the object with the settings of the leading manager, in the
	// namespace of its MachineDeployments.
	ConfigMap = "evenkeel-settings"
	// flagsKey is the key of the ConfigMap with flags and their values, in JSON.
	flagsKey = "flags.json"
	// versionKey is the key with the version of that process.
	versionKey = "version"
	// Holder is the annotation with the name of the process that wrote them.
	Holder = "evenkeel.machine.sapcloud.io/holder"
	// mostBytes limits how much of a ConfigMap is read: everyone who may write ConfigMaps can write
	// it.
	mostBytes = 64 << 10
)

// Names are the flags that a preview depends on.
func Names() []string {
	return []string{
		"autoscaler-scaledown-annotation-during-rollout", "balance-boot-patience", "balance-mode", "balance-similar-node-groups", "balancing-ignore-label", "balancing-label", "drain-reserve", "instant-release",
		"max-allocatable-difference-ratio", "max-free-difference-ratio", "max-total-unready-percentage", "memory-difference-ratio", "nodes",
		"ok-total-unready-count", "pool-label", "release-patience", "release-priority-cutoff", "release-schedulers", "reserve-accounting",
		"reserve-boot-patience", "safety-down", "safety-up", "similar-cloud", "similar-pool-label", "skip-nodes-with-local-storage",
		"skip-nodes-with-system-pods", "surplus-patience",
	}
}

// Publication returns the object with the values of the flags, and the version of the process.
func Publication(namespace, holder, version string, flags *pflag.FlagSet) (*corev1.ConfigMap, error) {
	all := map[string][]string{}
	for _, name := range Names() {
		flag := flags.Lookup(name)
		if flag == nil {
			return nil, fmt.Errorf("publish settings: there is no flag --%s", name)
		}
		all[name] = values(flag)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return nil, fmt.Errorf("publish settings: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ConfigMap, Annotations: map[string]string{Holder: holder}},
		Data:       map[string]string{flagsKey: string(text), versionKey: version},
	}, nil
}

// VersionOf returns the version of the process that published settings; empty if it did not say so.
func VersionOf(published *corev1.ConfigMap) string { return published.Data[versionKey] }

// values returns the values of a flag; most flags have one.
func values(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return slices.Concat([]string{}, list.GetSlice())
	}
	return []string{flag.Value.String()}
}

// Adopt sets flags to their published values, except those that the user set, and those that a
// command does not have. It returns flags of another version, which are unknown here.
func Adopt(flags *pflag.FlagSet, published *corev1.ConfigMap) (unknown []string, err error) {
	text := published.Data[flagsKey]
	if len(text) > mostBytes {
		return nil, fmt.Errorf("read ConfigMap %s: its %s has %d bytes", ConfigMap, flagsKey, len(text))
	}
	var all map[string][]string
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", ConfigMap, err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(Names(), name) {
			unknown = append(unknown, name)
			continue
		}
		flag := flags.Lookup(name)
		if flag == nil || flag.Changed {
			continue
		}
		if err := adopt(flag, all[name]); err != nil {
			return unknown, fmt.Errorf("read ConfigMap %s: --%s: %w", ConfigMap, name, err)
		}
	}
	return unknown, nil
}

func adopt(flag *pflag.Flag, to []string) error {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.Replace(to)
	}
	if len(to) != 1 {
		return fmt.Errorf("has %d values and not one", len(to))
	}
	return flag.Value.Set(to[0])
}
