// SPDX-License-Identifier: Apache-2.0

package endless

import "testing"

func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Fail()
	}
}
