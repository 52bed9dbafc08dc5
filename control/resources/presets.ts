/**
 * Presets for AI voice services: fields that are filled in when a carrier or an agent is created.
 */
import { z } from 'zod'
import type { MediaColumns } from '../../schema/rules/media.ts'

export const preset = z
  .enum(['ai-openai', 'ai-livekit', 'ai-generic'])
  .optional()
  .describe(
    'Fills in the fields for an AI voice service that have their default: TLS, SRTP, ' +
      'codecs, DTMF and headers to strip.',
  )

export type Preset = NonNullable<z.output<typeof preset>>

interface PresetFields extends Pick<MediaColumns, 'media_profile' | 'dtmf'> {
  readonly codecs: string[]
  readonly strip_headers: string[]
}

/**
 * Headers about the caller and earlier networks. From has the caller; an AI service needs nothing
 * more.
 */
const identities = [
  'P-Asserted-Identity',
  'Remote-Party-ID',
  'Diversion',
  'History-Info',
  'Identity',
  'P-Charging-Vector',
  'Geolocation',
  'Geolocation-Routing',
]

const common = { media_profile: 'srtp', dtmf: 'rfc4733', strip_headers: identities } as const

const presets: Readonly<Record<Preset, PresetFields>> = {
  // Takes TLS and SRTP only, and prefers Opus.
  'ai-openai': { ...common, strip_headers: [...identities], codecs: ['opus', 'PCMU', 'PCMA'] },
  // Has no Opus on the SIP side (livekit/sip 281), and drops INVITEs with P-Charging-Vector
  // (livekit/sip 251).
  'ai-livekit': { ...common, strip_headers: [...identities], codecs: ['G722', 'PCMU', 'PCMA'] },
  'ai-generic': {
    ...common,
    strip_headers: [...identities],
    codecs: ['opus', 'G722', 'PCMU', 'PCMA'],
  },
}

interface Fillable extends Pick<MediaColumns, 'media_profile' | 'dtmf'> {
  readonly preset?: Preset | undefined
  readonly codecs?: string[] | null | undefined
  readonly strip_headers: string[]
}

/** The body, with fields of its preset where it has only defaults. */
export function filledIn<Body extends Fillable>(body: Body): Body {
  if (body.preset === undefined) return body
  const { media_profile, dtmf, codecs, strip_headers } = presets[body.preset]
  return {
    ...body,
    media_profile: body.media_profile === 'auto' ? media_profile : body.media_profile,
    dtmf: body.dtmf === 'auto' ? dtmf : body.dtmf,
    codecs: body.codecs ?? codecs,
    strip_headers: body.strip_headers.length === 0 ? strip_headers : body.strip_headers,
  }
}

/** The URI by TLS, where it names no transport. */
export const overTls = (uri: string): string =>
  /;transport=/i.test(uri) ? uri : `${uri};transport=tls`
