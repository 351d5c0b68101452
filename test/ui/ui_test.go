// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/overview"
)

var _ = Describe("Every scene, however it is looked at", func() {
	for _, scene := range Scenes() {
		for _, look := range looks {
			It(fmt.Sprintf("is quiet, asks nobody else, fits and can be read: %s, %s", scene.Name, look.Name), func(ctx context.Context) {
				preview := shown(scene)
				tab := opened(ctx, preview.Address, scene.Now.At, look)
				picture(ctx, tab, scene.Name+"-"+look.Name)
				expectFit(ctx, tab, look)
				expectQuiet(tab, preview.Root)
			}, NodeTimeout(patience))
		}
	}
})

// expectFit: nothing is wider than the window, faint, or without a name.
func expectFit(ctx context.Context, tab *Tab, look Look) {
	GinkgoHelper()
	var width int
	// Not compared with the window, which grows on a phone with what does not fit.
	Expect(tab.Evaluate(ctx, `document.documentElement.scrollWidth`, &width)).To(Succeed())
	Expect(width).To(BeNumerically("<=", look.Width), "wider than the window")
	Expect(tab.Faint(ctx)).To(BeEmpty(), "text with too little contrast")
	Expect(tab.Nameless(ctx)).To(BeEmpty(), "what a screen reader cannot name")
}

// expectQuiet: the browser reported no problem, and asked only the page's own server.
func expectQuiet(tab *Tab, address string) {
	GinkgoHelper()
	Expect(tab.Problems()).To(BeEmpty())
	Expect(tab.Asked()).NotTo(BeEmpty())
	for _, asked := range tab.Asked() {
		Expect(strings.HasPrefix(asked, address)).To(BeTrue(), asked)
	}
}

var _ = Describe("A page that is open", func() {
	desktop, dark := looks[0], looks[1]
	small := Scenes()[1]

	for _, look := range []Look{desktop, dark} {
		It("shows what changed, without being loaded again: "+look.Name, func(ctx context.Context) {
			preview := shown(small)
			tab := opened(ctx, preview.Address, now, look)
			Expect(tab.Text(ctx, "#troubles")).To(ContainSubstring("No problems found"))
			Expect(tab.Evaluate(ctx, `window.sameDocument = true`, nil)).To(Succeed())
			Expect(preview.Show(later(spoiled(newPools(5, 2))))).To(Succeed())
			Expect(tab.Until(ctx, readAt(now.Add(time.Minute)))).To(Succeed())
			Expect(tab.Text(ctx, "#troubles h2")).To(Equal("11 problems"))
			Expect(tab.Text(ctx, ".pool h3")).To(ContainSubstring("<script>"))
			var same bool
			Expect(tab.Evaluate(ctx, `window.sameDocument === true`, &same)).To(Succeed())
			Expect(same).To(BeTrue())
			var title string
			Expect(tab.Evaluate(ctx, `document.title`, &title)).To(Succeed())
			Expect(title).To(Equal("(11 wrong) Evenkeel · preview"))
			expectFit(ctx, tab, look)
			expectQuiet(tab, preview.Root)
		}, NodeTimeout(patience))
	}

	It("keeps what the reader opened and where the focus is", func(ctx context.Context) {
		preview := shown(small)
		tab := opened(ctx, preview.Address, now, desktop)
		Expect(tab.Evaluate(ctx, `document.querySelector("#timeline-table").open = true`, nil)).To(Succeed())
		Expect(tab.Evaluate(ctx, `document.querySelector(".zone a").focus()`, nil)).To(Succeed())
		changed := later(newPools(7, 1))
		Expect(preview.Show(changed)).To(Succeed())
		Expect(tab.Until(ctx, readAt(changed.At))).To(Succeed())
		var kept []bool
		Expect(tab.Evaluate(ctx, `[document.querySelector("#timeline-table").open, document.activeElement === document.querySelector(".zone a")]`, &kept)).To(Succeed())
		Expect(kept).To(Equal([]bool{true, true}))
		Expect(tab.Text(ctx, ".zone .numbers")).To(HavePrefix("R 7 + X 1"))
	}, NodeTimeout(patience))

	It("takes in what came, what went, and another order", func(ctx context.Context) {
		preview := shown(Scene{Now: manyPools(3)})
		tab := opened(ctx, preview.Address, now, desktop)
		changed := later(manyPools(5))
		changed.Pools = changed.Pools[1:]
		changed.Balancers = []overview.Balancer{newBalancer()}
		changed.Pools[0], changed.Pools[3] = changed.Pools[3], changed.Pools[0]
		Expect(preview.Show(changed)).To(Succeed())
		Expect(tab.Until(ctx, readAt(changed.At))).To(Succeed())
		var ids []string
		Expect(tab.Evaluate(ctx, `[...document.querySelectorAll("main > [id]")].map(e => e.id)`, &ids)).To(Succeed())
		prefix := "pool/shoot--garden--prod/worker-0"
		Expect(ids).To(Equal([]string{"totals", "troubles", "timeline", "pools", prefix + "4", prefix + "2", prefix + "3", prefix + "1", "balancers", "read"}))
	}, NodeTimeout(patience))

	It("leads from a tile to its machine, and back", func(ctx context.Context) {
		preview := shown(small)
		tab := opened(ctx, preview.Address, now, desktop)
		name := small.Now.Pools[0].Zones[1].Machines[6].Name
		click := `document.querySelector('[data-machine=%q]').dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`
		Expect(tab.Leave(ctx, fmt.Sprintf(click, name), "/zone/")).To(Succeed())
		Expect(tab.Until(ctx, `document.querySelector("tr:target time[title]")`)).To(Succeed())
		Expect(tab.Text(ctx, "tr:target")).To(And(ContainSubstring(name), ContainSubstring("reserve ready"), ContainSubstring("49 min ago")))
		Expect(tab.Text(ctx, ".back a")).To(Equal("All pools"))
		expectFit(ctx, tab, desktop)
		expectQuiet(tab, preview.Root)
	}, NodeTimeout(patience))

	for _, look := range looks {
		It("shows how large the reserve of a zone should be, in pictures and numbers: "+look.Name, func(ctx context.Context) {
			preview := shown(small)
			zone := small.Now.Pools[0].Zones[0].Name
			tab := opened(ctx, preview.Address, now, look)
			Expect(tab.Leave(ctx, fmt.Sprintf(`location.href = %q`, preview.Root+"zone/shoot--garden--prod/"+zone), "/zone/")).To(Succeed())
			Expect(tab.Until(ctx, `document.querySelector("#zone a[href^='/size/']")`)).To(Succeed())
			Expect(tab.Leave(ctx, `document.querySelector("#zone a[href^='/size/']").click()`, "/size/")).To(Succeed())
			Expect(tab.Until(ctx, `document.readyState === "complete" && [...document.images].every(i => i.complete)`)).To(Succeed())
			var wide []int
			Expect(tab.Evaluate(ctx, `[...document.querySelectorAll(".pictures img")].map(i => i.naturalWidth)`, &wide)).To(Succeed())
			Expect(wide).To(Equal([]int{920, 920}), "both pictures were drawn")
			Expect(tab.Text(ctx, ".suggestion")).To(MatchRegexp(`^Keep machines only by \d schedules: this reaches p99 within 5s with \d+% fewer machine hours`))
			Expect(tab.Text(ctx, "tr.suggested th")).To(Equal("schedule"))
			picture(ctx, tab, "size-"+look.Name)
			expectFit(ctx, tab, look)
			expectQuiet(tab, preview.Root)
		}, NodeTimeout(patience))
	}

	It("says that a zone is gone, and shows it when it is back", func(ctx context.Context) {
		preview := shown(small)
		zone := small.Now.Pools[0].Zones[0].Name
		tab := opened(ctx, preview.Address, now, desktop)
		Expect(tab.Leave(ctx, fmt.Sprintf(`location.href = %q`, preview.Root+"zone/shoot--garden--prod/"+zone), "/zone/")).To(Succeed())
		Expect(tab.Until(ctx, `document.querySelector("#machines")`)).To(Succeed())
		Expect(preview.Show(later(overview.Overview{At: now}))).To(Succeed())
		Expect(tab.Until(ctx, `document.querySelector("#gone") && !document.querySelector("#machines")`)).To(Succeed())
		Expect(preview.Show(later(small.Now))).To(Succeed())
		Expect(tab.Until(ctx, `!document.querySelector("#gone") && document.querySelectorAll("#machines tbody tr").length === 7`)).To(Succeed())
		expectQuiet(tab, preview.Root)
	}, NodeTimeout(patience))

	It("says that what it shows is old where the server has ended", func(ctx context.Context) {
		preview, err := StartPreview(program, small.Now)
		Expect(err).NotTo(HaveOccurred())
		tab := opened(ctx, preview.Address, now, desktop)
		Expect(preview.Stop()).To(Succeed())
		Expect(tab.Until(ctx, `document.querySelector("#link.lost")`)).To(Succeed())
		Expect(tab.Text(ctx, "#link")).To(HavePrefix("Connection lost: this is old, of 2026-11-2"))
	}, NodeTimeout(patience))

	It("opens with the printed address alone, and does not keep its key", func(ctx context.Context) {
		preview := shown(small)
		stranger, err := browser.Open(ctx, preview.Root, desktop)
		Expect(err).NotTo(HaveOccurred())
		Expect(stranger.Text(ctx, "body")).To(HavePrefix("open the address that kubectl evenkeel ui printed"))
		Expect(stranger.Close(ctx)).To(Succeed())
		tab := opened(ctx, preview.Address, now, desktop)
		var seen []string
		Expect(tab.Evaluate(ctx, `[location.href, document.cookie, document.referrer]`, &seen)).To(Succeed())
		Expect(seen).To(Equal([]string{preview.Root, "", ""}))
	}, NodeTimeout(patience))

	It("is used with the keyboard: first to the content, then from zone to zone", func(ctx context.Context) {
		preview := shown(small)
		tab := opened(ctx, preview.Address, now, desktop)
		var stops []string
		for range 7 {
			Expect(tab.Press(ctx, "Tab", 9)).To(Succeed())
			var stop string
			Expect(tab.Evaluate(ctx, `document.activeElement.textContent.trim()`, &stop)).To(Succeed())
			stops = append(stops, stop)
		}
		Expect(stops[:6]).To(Equal([]string{"Skip to the content", "Evenkeel", "In numbers", "eu-west-1a", "eu-west-1b", "eu-west-1c"}))
	}, NodeTimeout(patience))

	It("runs no script that somebody puts into it, and says so: what is quiet above would be heard", func(ctx context.Context) {
		preview := shown(small)
		tab := opened(ctx, preview.Address, now, desktop)
		Expect(tab.Evaluate(ctx, `(document.body.append(Object.assign(document.createElement("script"), {text: "window.owned = 1"})), document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/"})))`, nil)).To(Succeed())
		Expect(tab.Evaluate(ctx, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`, nil)).To(Succeed())
		Expect(tab.Problems()).To(ContainElements(ContainSubstring("script-src 'self'"), ContainSubstring("img-src 'self'")))
		var owned bool
		Expect(tab.Evaluate(ctx, `"owned" in window`, &owned)).To(Succeed())
		Expect(owned).To(BeFalse())
	}, NodeTimeout(patience))

	It("shows a thousand machines, and one of them that fails", func(ctx context.Context) {
		thousand := newPools(260, 74)
		preview := shown(Scene{Now: thousand})
		tab := opened(ctx, preview.Address, now, desktop)
		broken := later(newPools(260, 74))
		z := &broken.Pools[0].Zones[1]
		z.Machines[100].State = overview.Failed
		Expect(preview.Show(broken)).To(Succeed())
		Expect(tab.Until(ctx, readAt(broken.At))).To(Succeed())
		var tiles []int
		Expect(tab.Evaluate(ctx, `[document.querySelectorAll("[data-machine]").length, document.querySelectorAll(".zone use[href='#failed'][data-machine]").length]`, &tiles)).To(Succeed())
		Expect(tiles).To(Equal([]int{1002, 1}))
	}, NodeTimeout(patience))
})
