// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Every scene, however it is looked at", func() {
	for _, scene := range Scenes() {
		for _, look := range looks {
			It(fmt.Sprintf("is quiet, asks nobody else and fits: %s, %s", scene.Name, look.Name), func(ctx context.Context) {
				preview := shown(scene)
				tab := opened(ctx, preview.Address, scene.Now.At, look)
				picture(ctx, tab, scene.Name+"-"+look.Name)
				expectQuiet(ctx, tab, preview.Address)
			}, NodeTimeout(patience))
		}
	}
})

// expectQuiet: no complaint, no request to anybody else, nothing wider than the window.
func expectQuiet(ctx context.Context, tab *Tab, address string) {
	GinkgoHelper()
	Expect(tab.Problems()).To(BeEmpty())
	Expect(tab.Asked()).NotTo(BeEmpty())
	for _, asked := range tab.Asked() {
		Expect(strings.HasPrefix(asked, address) || asked == "about:blank").To(BeTrue(), asked)
	}
	var over int
	Expect(tab.Evaluate(ctx, `document.documentElement.scrollWidth - innerWidth`, &over)).To(Succeed())
	Expect(over).To(BeNumerically("<=", 0), "pixels that are out of the window")
}
