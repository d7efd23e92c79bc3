{{- define "kite-common.serviceaccount" -}}
{{- $account := .root.Values.serviceAccount }}
{{- if $account.create }}
apiVersion: v1
kind: ServiceAccount
{{ include "kite-common.metadata" (merge (dict "annotations" $account.annotations "labels" $account.labels) .) }}
# Only the controller's pod mounts the token, and says so itself.
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{- /*
The generated manifest of rights, with the release's namespace, the images'
namespace and the labels put in the place of those it was generated with. It stays
text, so that the reason of each right can be read in what is installed.
*/}}
{{- define "kite-common.rbac" -}}
{{- $values := .root.Values }}
{{- if $values.rbac.create }}
{{- $text := .root.Files.Get "files/rbac.yaml" }}
{{- if $values.metrics.secure.enabled }}
{{- $text = printf "%s%s" $text (.root.Files.Get "files/rbac-metrics.yaml") }}
{{- end }}
{{- /* By way of a mark, for the case that one of the two is called what the other was. */}}
{{- $text = replace "namespace: kite-images\n" "namespace: @images\n" $text }}
{{- $text = replace "namespace: kite-system\n" (printf "namespace: %s\n" (toYaml .root.Release.Namespace)) $text }}
{{- with $values.imageNamespace }}
{{- $text = replace "namespace: @images\n" (printf "namespace: %s\n" (toYaml .name)) $text }}
{{- end }}
{{- $labels := include "kite-common.labels" . | nindent 4 | trimPrefix "\n" }}
{{- $text = replace "    app.kubernetes.io/part-of: kite\n" (printf "%s\n" $labels) $text }}
{{- with include "kite-common.annotations" . }}
{{- $text = replace "\nmetadata:\n" (printf "\nmetadata:\n  annotations:\n%s\n" (. | nindent 4 | trimPrefix "\n")) $text }}
{{- end }}
{{- range splitList "---\n" $text }}
{{- if contains "kind:" . }}
---
{{ . | trimSuffix "\n" }}
{{- if and $values.rbac.extraRules (contains "\nkind: ClusterRole\n" .) (not (contains "-metrics\n" .)) }}
# from rbac.extraRules
{{ toYaml $values.rbac.extraRules }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
The namespace of the published images, for those whose rights name it. One that is there
already is left to whoever made it; Helm would refuse to own it. Where the cluster is not
asked, as by helm template, it is among the objects.
*/}}
{{- define "kite-common.imagenamespace" -}}
{{- $images := .root.Values.imageNamespace }}
{{- $there := dict }}
{{- if $images.create }}
{{- $there = lookup "v1" "Namespace" "" $images.name }}
{{- end }}
{{- $maker := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there }}
{{- $from := dig "metadata" "annotations" "meta.helm.sh/release-namespace" "" $there }}
{{- $own := and (eq $maker .root.Release.Name) (eq $from .root.Release.Namespace) }}
{{- if and $images.create (or (not $there) $own) }}
apiVersion: v1
kind: Namespace
metadata:
  name: {{ toYaml $images.name }}
  labels:
    {{- include "kite-common.labels" . | nindent 4 }}
  annotations:
    # The images in it are not this chart's.
    helm.sh/resource-policy: keep
    {{- with include "kite-common.annotations" . }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}
