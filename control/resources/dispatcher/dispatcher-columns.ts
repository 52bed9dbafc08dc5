/** The columns of dispatcher sets and nodes, and the destinations that they name. */
import { toFlag } from '../../../schema/columns.ts'
import { mediaColumnsOf } from '../media-fields.ts'
import type { DispatcherBody, NodeBody } from './dispatcher-body.ts'
import { nodeUri, type WrittenDestination } from '../gateway-reach.ts'

/** The destinations of a set's calls. */
export function destinationsOf({
  nodes,
  voicemail_uri,
  spy_uri,
}: DispatcherBody): WrittenDestination[] {
  const members = nodes.flatMap((node, index) =>
    node.is_enabled ? [{ path: `nodes.${index}.host`, uri: nodeUri(node) }] : [],
  )
  return [...members, ...urisOf({ voicemail_uri, spy_uri })]
}

/** The destinations that a set names beside its nodes. */
export function urisOf({
  voicemail_uri,
  spy_uri,
}: Pick<DispatcherBody, 'voicemail_uri' | 'spy_uri'>): WrittenDestination[] {
  return [
    ...(voicemail_uri == null ? [] : [{ path: 'voicemail_uri', uri: voicemail_uri }]),
    ...(spy_uri == null ? [] : [{ path: 'spy_uri', uri: spy_uri }]),
  ]
}

export const columnsOf = ({
  endpoint_name,
  algorithm,
  probe,
  voicemail_uri,
  spy_uri,
  ...media
}: DispatcherBody) => ({
  ...mediaColumnsOf(media),
  endpoint_name,
  algorithm,
  voicemail_uri: voicemail_uri ?? null,
  spy_uri: spy_uri ?? null,
  probe_interval_ms: probe?.interval_ms ?? null,
  probe_timeout_ms: probe?.timeout_ms ?? null,
  probe_fail_threshold: probe?.fail_threshold ?? null,
  probe_recover_threshold: probe?.recover_threshold ?? null,
  probe_ok_codes: probe?.ok_codes === undefined ? null : JSON.stringify(probe.ok_codes),
})

export const nodeColumnsOf = (node: NodeBody) => ({
  ...node,
  description: node.description ?? null,
  is_enabled: toFlag(node.is_enabled),
})
