{{- define "kite-common.notes" -}}
{{- $values := .root.Values }}
{{ .controller }} {{ .root.Chart.AppVersion }} is installed in namespace {{ .root.Release.Namespace }}.
{{- if eq (int $values.replicas) 0 }}

It is PAUSED: replicas is 0, so nothing is kept until it is scaled up again. What it said
about objects stays where it is and grows old.

  kubectl -n {{ .root.Release.Namespace }} scale deployment {{ .controller }} --replicas=1
{{- else }}

See that it works, and who leads:

  kubectl -n {{ .root.Release.Namespace }} rollout status deployment {{ .controller }}
  kubectl -n {{ .root.Release.Namespace }} get lease {{ .controller }}
{{- end }}

If it does not become ready it says what it waits for:

  kubectl -n {{ .root.Release.Namespace }} port-forward deployment/{{ .controller }} 8080:{{ $values.metrics.port }} &
  curl 'http://127.0.0.1:8080/readyz?verbose'

The kinds of Kite come from the chart kite-crds. See them with: kubectl api-resources --categories=kite
{{- if not $values.rbac.create }}

rbac.create is false: the ClusterRole and the Role {{ .controller }} must be given by other means.
{{- end }}
{{- end }}
