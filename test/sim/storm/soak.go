// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2"
)

// soakVariable is how many objects are created and deleted in each soak.
const soakVariable = "SOAK"

// Soak returns how many rounds of a soak are needed until at least this many objects, or as many as
// SOAK defines, have been created and deleted. It reports their number, and the duration of the
// spec.
func Soak(usual, each int) (rounds int) {
	objects := usual
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if objects, err = strconv.Atoi(text); err != nil || objects < 1 {
			ginkgo.Fail(fmt.Sprintf("%s=%q: want a number", soakVariable, text))
		}
	}
	rounds = (objects + each - 1) / each
	begin := time.Now()
	ginkgo.DeferCleanup(func() {
		ginkgo.AddReportEntry("soak", fmt.Sprintf("%d objects in %.0f s", rounds*each, time.Since(begin).Seconds()))
	})
	return rounds
}
