{{- define "name" -}}
gardener-extension-evenkeel
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "leases" -}}
- evenkeel-leader-election
- gardener-extension-heartbeat
{{- end -}}

{{/* the image vector, which other extensions take as text */}}
{{- define "images" -}}
{{- if kindIs "string" .Values.imageVectorOverwrite -}}
{{ .Values.imageVectorOverwrite }}
{{- else -}}
{{ toYaml .Values.imageVectorOverwrite }}
{{- end -}}
{{- end -}}
