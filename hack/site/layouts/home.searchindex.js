{{- /* A list of sections: URL, title of the page, heading and text. */ -}}
{{- $all := newScratch -}}
{{- range $page := site.Pages -}}
  {{- $title := partial "title" . -}}
  {{- range split (replaceRE `<h([1-4]) id=` "\x00<h$1 id=" .Content) "\x00" -}}
    {{- with findRESubmatch `(?s)^<h[1-4] id="([^"]*)">(.*?)</h[1-4]>(.*)$` . 1 -}}
      {{- $section := index . 0 -}}
      {{- $text := index $section 3 | replaceRE `<[^>]*>` " $0" | plainify | htmlUnescape -}}
      {{- $all.Add "sections" (slice (dict
        "url" (printf "%s#%s" (strings.TrimPrefix "/" $page.RelPermalink) (index $section 1))
        "title" $title
        "heading" (index $section 2 | plainify | htmlUnescape | strings.TrimSpace)
        "text" (replaceRE `\s+` " " $text | strings.TrimSpace))) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
const sections = {{ $all.Get "sections" | jsonify }};
