/** Media rules as they are stored, and as they are inherited. Pure. */
import type { DtmfMode, MediaPolicy, MediaProfile, MediaRules } from '../contracts/media.ts'

export interface MediaColumns {
  readonly media: MediaPolicy | null
  readonly media_profile: MediaProfile
  /** JSON array of codec names, or null: all. */
  readonly codecs: string | null
  readonly dtmf: DtmfMode
}

/** Of a party about which nothing was said. */
export const noMediaRules: MediaRules = {
  policy: null,
  profile: 'auto',
  codecs: null,
  dtmf: 'auto',
}

/** Undefined: nothing was said, so that a record without rules costs nothing. */
export function mediaRulesOf(row: MediaColumns): MediaRules | undefined {
  const { media: policy, media_profile: profile, dtmf } = row
  const codecs = row.codecs === null ? null : (readNames(row.codecs) ?? null)
  const isSaid = policy !== null || profile !== 'auto' || codecs !== null || dtmf !== 'auto'
  return isSaid ? { policy, profile, codecs, dtmf } : undefined
}

/** What an extension says, and for the rest its tenant. */
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

/** A JSON array of texts; undefined: it is none. */
export function readNames(json: string): readonly string[] | undefined {
  try {
    const list: unknown = JSON.parse(json)
    return Array.isArray(list) && list.every((each) => typeof each === 'string') ? list : undefined
  } catch {
    return undefined
  }
}
