/**
 * The URI at which the PBX nodes of a dispatcher set connect a supervisor to one of their calls: a SIP URI
 * with placeholders, such as `sip:spy-{mode}-{call_uuid}@{node}`. The PBX mixes the media.
 */

/** The requested mode: listen, whisper to one party, or talk to both. */
export type SpyMode = 'listen' | 'whisper' | 'barge'
/** The party that hears a whisper. */
export type SpySide = 'caller' | 'callee' | 'both'

export interface SpyValues {
  /** The call to join, as sent to the node in `X-Call-UUID`. */
  readonly call_uuid: string
  readonly mode: SpyMode
  readonly side: SpySide
  /** `host:port` of the call's node. */
  readonly node: string
}

export const renderSpyUri = (template: string, values: SpyValues): string =>
  template.replace(/\{(call_uuid|mode|side|node)\}/g, (_all, name: keyof SpyValues) => values[name])

/** Whether the URI can express the request: without placeholders, it means listening to both. */
export function canSpy(template: string, mode: SpyMode, side: SpySide): boolean {
  if (mode !== 'listen' && !template.includes('{mode}')) return false
  return side === 'both' || template.includes('{side}')
}
