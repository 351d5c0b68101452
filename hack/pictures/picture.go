// SPDX-License-Identifier: Apache-2.0

package pictures

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	lineHeight = 19
	// letter is the width that text needs at most for each letter, on average.
	letter = 8.6
	// machine is the width of a machine, and gap the space to the next one.
	machine, gap = 22, 7
)

const style = `<style>
svg { --paper: #ffffff; --ink: #16202b; --quiet: #55626f; --rule: #d3dae1; --serve: #0b7a52; --on-serve: #ffffff;
  --reserve: #1f5fae; --leave: #6b7783; --fail: #b3261e; --tint: #eef2f6;
  background: var(--paper); font: 15px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #0f1720; --ink: #e7edf3; --quiet: #a3b1be; --rule: #33414e; --serve: #43c08c;
  --on-serve: #07130d; --reserve: #7fb2f0; --leave: #95a2ae; --fail: #ff8a80; --tint: #1a2530; } }
text { fill: var(--ink); } .title { font-size: 18px; } .title, .bold { font-weight: 600; } .note { fill: var(--quiet); }
.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 6px; }
.left { text-anchor: start; } .middle { text-anchor: middle; } .right { text-anchor: end; }
rect { stroke-width: 2; fill: var(--tint); } path { fill: none; stroke-width: 2; }
rect.serve { fill: var(--serve); stroke: var(--serve); } text.serve { fill: var(--on-serve); }
rect.reserve { fill: var(--paper); stroke: var(--reserve); } rect.leave { stroke: var(--leave); stroke-dasharray: 6 4; }
rect.fail { fill: var(--paper); stroke: var(--fail); stroke-dasharray: 3 3; } rect.plain { stroke: var(--rule); }
path.serve { stroke: var(--serve); } path.reserve { stroke: var(--reserve); } path.leave { stroke: var(--leave); stroke-dasharray: 6 4; }
path.fail { stroke: var(--fail); } path.plain, path.rule { stroke: var(--rule); } path.rule { stroke-width: 1; }
circle.serve { fill: var(--serve); } circle.reserve { fill: var(--reserve); } circle.leave { fill: var(--leave); }
circle.fail { fill: var(--fail); } circle.plain { fill: var(--ink); }
path.arrow { stroke: var(--ink); marker-end: url(#head); } .head { fill: var(--ink); stroke: none; }
</style>
<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>
`

var (
	colors = []string{"serve", "reserve", "leave", "fail", "plain"}
	aligns = []string{"left", "middle", "right"}
)

// picture is a picture while its statements are read.
type picture struct {
	title, desc   string
	sources       []string
	width, height float64
	scale         scale
	// times are the measured ones, as documents write them.
	times []string
	body  bytes.Buffer
}

// Render draws the picture that a text describes, as SVG.
func Render(text string) ([]byte, error) {
	p, err := parsePicture(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-labelledby=\"title desc\">\n",
		p.width, p.height, p.width, p.height)
	fmt.Fprintf(&out, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", html.EscapeString(p.title), html.EscapeString(p.desc))
	out.WriteString(style)
	fmt.Fprintf(&out, "<text class=\"title\" x=\"20\" y=\"30\">%s</text>\n", html.EscapeString(p.title))
	out.Write(p.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes(), nil
}

func parsePicture(text string) (*picture, error) {
	p := &picture{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		a := &arguments{rest: rest, scale: p.scale}
		p.add(verb, a)
		if a.err == nil && a.rest != "" {
			a.err = fmt.Errorf("%q is too much", a.rest)
		}
		if a.err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number, verb, a.err)
		}
	}
	if p.title == "" || p.desc == "" || p.width == 0 {
		return nil, errors.New("title, desc or size is missing")
	}
	return p, nil
}

// add carries out a statement.
func (p *picture) add(verb string, a *arguments) {
	switch verb {
	case "title":
		p.title = a.remaining()
	case "desc":
		p.desc = strings.TrimSpace(p.desc + " " + a.remaining())
	case "source":
		p.sources = strings.Fields(a.remaining())
	case "size":
		p.width, p.height = a.number(), a.number()
	case "scale":
		p.scale = scale{log: a.oneOf([]string{"linear", "log"}) == "log", x1: a.number(), x2: a.number(), t1: a.time(), t2: a.time()}
	case "box":
		p.box(a)
	case "machines":
		for color, x, y, n := a.oneOf(colors), a.position(), a.number(), a.number(); n > 0; n, x = n-1, x+machine+gap {
			p.rect(color, x, y, x+machine, y+machine)
		}
	case "line":
		color := a.oneOf(colors)
		p.path(color, a.points())
	case "arrow":
		p.path("arrow", a.points())
	case "text", "bold", "note":
		align, x, y := a.oneOf(aligns), a.position(), a.number()
		p.lines(a, verb, align, x, y, a.remaining())
	case "ticks":
		p.ticks(a)
	case "times":
		p.measured(a)
	default:
		a.fail(errors.New("there is no such statement"))
	}
}

func (p *picture) rect(color string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.body, "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"5\"/>\n", color, formatPixels(x1), formatPixels(y1), formatPixels(x2-x1), formatPixels(y2-y1))
}

func (p *picture) path(class, points string) {
	fmt.Fprintf(&p.body, "<path class=\"%s\" d=\"M%s\"/>\n", class, points)
}

func (p *picture) box(a *arguments) {
	color, x1, y1, x2, y2 := a.oneOf(colors), a.position(), a.number(), a.position(), a.number()
	p.rect(color, x1, y1, x2, y2)
	text := a.remaining()
	if text == "" {
		return
	}
	first, others, more := strings.Cut(text, " / ")
	for line := range strings.SplitSeq(text, " / ") {
		if textWidth(line) > x2-x1 {
			a.fail(fmt.Errorf("%q is wider than the box", line))
		}
	}
	y := (y1+y2)/2 + 5 - lineHeight/2*float64(strings.Count(text, " / "))
	p.lines(a, "bold "+color, "middle", (x1+x2)/2, y, first)
	if more {
		p.lines(a, color, "middle", (x1+x2)/2, y+lineHeight, others)
	}
}

// lines writes lines of text, one below the other.
func (p *picture) lines(a *arguments, class, align string, x, y float64, text string) {
	for line := range strings.SplitSeq(text, " / ") {
		left := x - textWidth(line)*float64(slices.Index(aligns, align))/2
		if left < 0 || left+textWidth(line) > p.width {
			a.fail(fmt.Errorf("%q is wider than the picture", line))
		}
		fmt.Fprintf(&p.body, "<text class=\"%s %s\" x=\"%s\" y=\"%s\">%s</text>\n", class, align, formatPixels(x), formatPixels(y), html.EscapeString(line))
		y += lineHeight
	}
}

func (p *picture) ticks(a *arguments) {
	y1, y2 := a.number(), a.number()
	for a.rest != "" && a.err == nil {
		x, words := a.moment()
		p.path("rule", fmt.Sprintf("%s %s V%s", formatPixels(x), formatPixels(y1), formatPixels(y2)))
		p.lines(a, "note", "middle", x, y2+lineHeight, words)
	}
}

// measured draws a name and its times, over a line with a dot for each.
func (p *picture) measured(a *arguments) {
	color, y := a.oneOf(colors), a.number()
	line := y + lineHeight - 4
	var dots strings.Builder
	var all []string
	for a.err == nil && !strings.HasPrefix(a.rest, ":") {
		x, words := a.moment()
		all = append(all, words)
		fmt.Fprintf(&dots, "<circle class=\"%s\" cx=\"%s\" cy=\"%s\" r=\"6\"/>\n", color, formatPixels(x), formatPixels(line))
	}
	p.times = append(p.times, all...)
	p.lines(a, "text halo", "left", p.scale.x1, y, strings.TrimPrefix(a.remaining(), ": "))
	p.lines(a, "bold halo", "right", p.scale.x2, y, strings.Join(all, " · "))
	p.path("plain", fmt.Sprintf("%s %s H%s", formatPixels(p.scale.x1), formatPixels(line), formatPixels(p.scale.x2)))
	p.body.WriteString(dots.String())
}

// scale maps times to horizontal positions.
type scale struct {
	log    bool
	x1, x2 float64
	t1, t2 time.Duration
}

func (s scale) position(t time.Duration) float64 {
	part := float64(t-s.t1) / float64(s.t2-s.t1)
	if s.log {
		part = math.Log(float64(t)/float64(s.t1)) / math.Log(float64(s.t2)/float64(s.t1))
	}
	return s.x1 + part*(s.x2-s.x1)
}

// arguments are what is left to read of a statement, and the first error.
type arguments struct {
	rest  string
	scale scale
	err   error
}

func (a *arguments) fail(err error) { a.err = cmp.Or(a.err, err) }

func (a *arguments) next() string {
	word, _, _ := strings.Cut(a.rest, " ")
	return word
}

func (a *arguments) word() string {
	word := a.next()
	a.rest = strings.TrimLeft(a.rest[len(word):], " ")
	return word
}

func (a *arguments) remaining() string {
	text := a.rest
	a.rest = ""
	return text
}

func (a *arguments) oneOf(all []string) string {
	word := a.word()
	if !slices.Contains(all, word) {
		a.fail(fmt.Errorf("%q is none of %s", word, strings.Join(all, ", ")))
	}
	return word
}

func (a *arguments) number() float64 {
	n, err := strconv.ParseFloat(a.word(), 64)
	a.fail(err)
	return n
}

func (a *arguments) time() time.Duration {
	t, err := time.ParseDuration(a.word())
	a.fail(err)
	return t
}

// moment reads a time, and returns its position and how documents write it, such as 49 ms.
func (a *arguments) moment() (x float64, words string) {
	word := a.next()
	number := strings.TrimRight(word, "ms")
	return a.scale.position(a.time()), number + " " + word[len(number):]
}

// position reads a horizontal position: a number of pixels, or a time on the scale.
func (a *arguments) position() float64 {
	if strings.HasSuffix(a.next(), "s") {
		return a.scale.position(a.time())
	}
	return a.number()
}

func (a *arguments) points() string {
	var all []string
	for a.rest != "" && a.err == nil {
		all = append(all, formatPixels(a.position())+" "+formatPixels(a.number()))
	}
	if len(all) < 2 {
		a.fail(errors.New("a line needs two points"))
	}
	return strings.Join(all, " L")
}

// textWidth is about how wide a line of text is at most.
func textWidth(line string) float64 { return letter * float64(len([]rune(line))) }

func formatPixels(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }
