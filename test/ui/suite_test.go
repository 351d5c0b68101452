// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"flag"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/overview"
)

var pictures = flag.String("pictures", "", "folder for pictures of every scene; none where empty")

func TestUI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The page in a browser")
}

// patience is how long a browser on a busy machine may take; what is measured has limits of its own.
const patience = time.Minute

var (
	browser *Browser
	program string
)

var _ = BeforeSuite(func() {
	var err error
	browser, err = NewBrowser()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(browser.Close()).To(Succeed()) })
	program, err = BuildPreview(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
})

// looks are how the page is looked at.
var looks = []Look{
	{Name: "desktop-light", Width: 1440, Height: 900},
	{Name: "desktop-dark", Width: 1440, Height: 900, Dark: true},
	{Name: "phone-light", Width: 390, Height: 844, Phone: true},
	{Name: "phone-dark", Width: 390, Height: 844, Phone: true, Dark: true},
	{Name: "small-phone", Width: 360, Height: 640, Phone: true},
	{Name: "wide", Width: 1600, Height: 1000},
}

// shown starts the page with a scene; it ends with the spec, by the signal that a person would send.
func shown(scene Scene) *Preview {
	GinkgoHelper()
	preview, err := StartPreview(program, append(scene.Past, scene.Now)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(preview.Stop()).To(Succeed()) })
	return preview
}

// opened is a tab that is live and shows what the scene ends with.
func opened(ctx context.Context, address string, at time.Time, look Look) *Tab {
	GinkgoHelper()
	tab, err := browser.Open(ctx, address, look)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(tab.Close(ctx)).To(Succeed()) }, NodeTimeout(patience))
	Expect(tab.Until(ctx, readAt(at))).To(Succeed())
	Expect(tab.Until(ctx, `document.querySelector("#link.live")`)).To(Succeed())
	return tab
}

// readAt is a condition: the page shows what was read at t.
func readAt(t time.Time) string {
	return `document.querySelector("#read time")?.dateTime === "` + t.UTC().Format(time.RFC3339) + `"`
}

func picture(ctx context.Context, tab *Tab, name string) {
	GinkgoHelper()
	if *pictures != "" {
		Expect(tab.Picture(ctx, filepath.Join(*pictures, name+".png"))).To(Succeed())
	}
}

func later(o overview.Overview) overview.Overview {
	o.At = o.At.Add(time.Minute)
	return o
}
