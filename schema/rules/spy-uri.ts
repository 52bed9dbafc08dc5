/**
 * Where the PBX nodes of a dispatcher set let a supervisor join one of their calls: a SIP URI with
 * placeholders, such as `sip:spy-{mode}-{call_uuid}@{node}`. Tollgate mixes no media: the PBX does.
 */

/** What is asked of a PBX: only hear the call, also talk to one side of it, or talk to both. */
export type SpyMode = 'listen' | 'whisper' | 'barge'
/** Who hears a whisper. */
export type SpySide = 'caller' | 'callee' | 'both'

export interface SpyValues {
  /** Of the call to be joined, as the node was told in `X-Call-UUID`. */
  readonly call_uuid: string
  readonly mode: SpyMode
  readonly side: SpySide
  /** `host:port` of the node that has the call. */
  readonly node: string
}

export const renderSpyUri = (template: string, values: SpyValues): string =>
  template.replace(/\{(call_uuid|mode|side|node)\}/g, (_all, name: keyof SpyValues) => values[name])

/** Whether the PBX could tell what is wanted of it: without a word for it, it is to listen to both. */
export function canSpy(template: string, mode: SpyMode, side: SpySide): boolean {
  if (mode !== 'listen' && !template.includes('{mode}')) return false
  return side === 'both' || template.includes('{side}')
}
