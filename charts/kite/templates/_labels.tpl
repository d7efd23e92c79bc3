{{- define "kite.labels" -}}
app.kubernetes.io/name: kite
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
app.kubernetes.io/part-of: kite
app.kubernetes.io/version: {{ toYaml .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ toYaml .Release.Service }}
helm.sh/chart: {{ printf "kite-%s" .Chart.Version | replace "+" "_" | trunc 63 }}
{{- with .Values.global.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
