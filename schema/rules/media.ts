/**
 * Media rules as they are stored and inherited, codecs, files of recordings, and supervision by PBX
 * nodes. Pure.
 */
import type { DtmfMode, MediaPolicy, MediaProfile, MediaRules } from '../contracts/field-values.ts'
import type { SpyMode, SpySide } from '../contracts/calls.ts'

export interface MediaColumns {
  readonly media: MediaPolicy | null
  readonly media_profile: MediaProfile
  /** JSON array of codec names, or null: all. */
  readonly codecs: string | null
  readonly dtmf: DtmfMode
}

/** The rules of a party without rules of its own. */
export const noMediaRules: MediaRules = {
  policy: null,
  profile: 'auto',
  codecs: null,
  dtmf: 'auto',
}

/** Undefined: the row has no rules. */
export function mediaRulesOf(row: MediaColumns): MediaRules | undefined {
  const { media: policy, media_profile: profile, dtmf } = row
  const codecs = row.codecs === null ? null : (readNames(row.codecs) ?? null)
  const hasRules = policy !== null || profile !== 'auto' || codecs !== null || dtmf !== 'auto'
  return hasRules ? { policy, profile, codecs, dtmf } : undefined
}

/** The rules of an extension, completed by those of its tenant. */
export function inheritedRules(
  own: MediaRules | undefined,
  tenant: MediaRules | undefined,
): MediaRules | undefined {
  if (own === undefined || tenant === undefined) return own ?? tenant
  return {
    policy: own.policy ?? tenant.policy,
    profile: own.profile === 'auto' ? tenant.profile : own.profile,
    codecs: own.codecs ?? tenant.codecs,
    dtmf: own.dtmf === 'auto' ? tenant.dtmf : own.dtmf,
  }
}

/** Reads a JSON array of texts; undefined: it is not one. */
export function readNames(json: string): readonly string[] | undefined {
  try {
    const list: unknown = JSON.parse(json)
    return Array.isArray(list) && list.every((each) => typeof each === 'string') ? list : undefined
  } catch {
    return undefined
  }
}

/** The name of a codec as SDP writes it; undefined: not known. */
export const knownCodec = (name: string): string | undefined => byLowerCase.get(name.toLowerCase())

/** Whether rtpengine, as Debian builds it, encodes and decodes it. */
export const canTranscode = (name: string): boolean =>
  transcoded.some((each) => each.toLowerCase() === name.toLowerCase())

const transcoded = ['PCMA', 'PCMU', 'G722', 'G723', 'G729', 'GSM', 'opus', 'speex']

/** Codecs that an allow list may name (RFC 3551, and the registered media types of audio). */
export const codecNames: readonly string[] = [
  ...transcoded,
  'AMR',
  'AMR-WB',
  'EVS',
  'G726-16',
  'G726-24',
  'G726-32',
  'G726-40',
  'G728',
  'iLBC',
  'iSAC',
  'L16',
]

const byLowerCase = new Map(codecNames.map((name) => [name.toLowerCase(), name]))

const callUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * The file of a call's recording. Undefined: no call of ours has such a uuid, and no other text
 * reaches a path.
 */
export const recordingFile = (uuid: string): string | undefined =>
  callUuid.test(uuid) ? `${uuid}.wav` : undefined

export interface SpyValues {
  /** The call to join, as sent to the node in `X-Call-UUID`. */
  readonly call_uuid: string
  readonly mode: SpyMode
  readonly side: SpySide
  /** `host:port` of the call's node. */
  readonly node: string
}

/**
 * The URI at which the PBX nodes of a dispatcher set connect a supervisor to one of their calls: a
 * SIP URI with placeholders, such as `sip:spy-{mode}-{call_uuid}@{node}`. The PBX mixes the media.
 */
export const renderSpyUri = (template: string, values: SpyValues): string =>
  template.replace(/\{(call_uuid|mode|side|node)\}/g, (_all, name: keyof SpyValues) => values[name])

/** Whether the URI can express the request: without placeholders, it means listening to both. */
export function canSpy(template: string, mode: SpyMode, side: SpySide): boolean {
  if (mode !== 'listen' && !template.includes('{mode}')) return false
  return side === 'both' || template.includes('{side}')
}
