// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

// WorkloadOf is what the cache keeps of a workload.
func WorkloadOf(item any) Workload {
	kept, err := stripObject(item)
	if err != nil {
		panic(err)
	}
	return kept.(*workload).Workload
}
