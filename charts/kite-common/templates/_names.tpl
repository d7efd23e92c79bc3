{{- /*
What the objects of a controller are called, and how they are labelled.

Every template of this chart takes a dict with two entries: root, the context of
the controller's chart, and controller, its name. The name is handed over because
.Chart.Name is the alias when the chart is a part of another.
*/}}

{{- /* The label app.kubernetes.io/name. nameOverride changes it and nothing else. */}}
{{- define "kite-common.name" -}}
{{- default .controller .root.Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- /* What selects the pods. Never a version: a Deployment's selector cannot change. */}}
{{- define "kite-common.selector" -}}
app.kubernetes.io/name: {{ include "kite-common.name" . | toYaml }}
app.kubernetes.io/instance: {{ .root.Release.Name | toYaml }}
{{- end }}

{{- /* Labels of pods: those that do not change with the chart's version, which would restart them. */}}
{{- define "kite-common.podLabels" -}}
{{- $values := .root.Values }}
{{- $labels := dict
  "app.kubernetes.io/component" .controller
  "app.kubernetes.io/part-of" "kite"
  "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- $labels = merge $labels (include "kite-common.selector" . | fromYaml) }}
{{- $labels = mergeOverwrite (deepCopy ($values.podLabels | default dict)) $labels }}
{{- merge $labels ($values.commonLabels | default dict) (($values.global | default dict).commonLabels | default dict) | toYaml }}
{{- end }}

{{- /* Labels of every object. */}}
{{- define "kite-common.labels" -}}
{{- $values := .root.Values }}
{{- $labels := dict
  "app.kubernetes.io/component" .controller
  "app.kubernetes.io/part-of" "kite"
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .controller .root.Chart.Version | replace "+" "_" | trunc 63) }}
{{- $labels = merge $labels (include "kite-common.selector" . | fromYaml) }}
{{- merge $labels (.labels | default dict) ($values.commonLabels | default dict) (($values.global | default dict).commonLabels | default dict) | toYaml }}
{{- end }}

{{- /* Annotations of every object: its own, which are the entry annotations, then the common ones. */}}
{{- define "kite-common.annotations" -}}
{{- $values := .root.Values }}
{{- $annotations := merge (dict) (.annotations | default dict) ($values.commonAnnotations | default dict) (($values.global | default dict).commonAnnotations | default dict) }}
{{- if $annotations }}
{{- toYaml $annotations }}
{{- end }}
{{- end }}

{{- /* The metadata of an object in the release's namespace, or in the entry namespace. */}}
{{- define "kite-common.metadata" -}}
metadata:
  name: {{ .controller }}
  namespace: {{ default .root.Release.Namespace .namespace | toYaml }}
  labels:
    {{- include "kite-common.labels" . | nindent 4 }}
  {{- with include "kite-common.annotations" . }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* The image: [registry/]repository, then the digest if there is one, else the tag. */}}
{{- define "kite-common.image" -}}
{{- $image := .root.Values.image }}
{{- $registry := default (.root.Values.global | default dict).imageRegistry $image.registry }}
{{- $name := $image.repository }}
{{- if $registry }}
{{- $name = printf "%s/%s" (trimSuffix "/" $registry) $name }}
{{- end }}
{{- if $image.digest }}
{{- printf "%s@%s" $name $image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}
