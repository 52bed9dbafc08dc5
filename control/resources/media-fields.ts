/** The fields of carriers, sets, extensions, tenants and agents about media (SPECIFICATION.md §4.7). */
import { z } from 'zod'
import type { MediaPolicy } from '../../schema/contracts/media.ts'
import { codecNames, knownCodec } from '../../schema/rules/codecs.ts'
import { readNames, type MediaColumns } from '../../schema/rules/media.ts'
import type { ErrorDetail } from '../http/api-error.ts'

const maxCodecs = 16

const codec = z.string().transform((name, context) => {
  const known = knownCodec(name)
  if (known !== undefined) return known
  const message = `must be a codec: ${codecNames.join(', ')}`
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

export const mediaPolicy = z.enum(['bypass', 'prefer', 'anchor'])

export const mediaFields = {
  media: mediaPolicy
    .nullish()
    .describe(
      'Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. The stronger of both parties counts.',
    ),
  media_profile: z
    .enum(['auto', 'rtp', 'srtp', 'webrtc'])
    .default('auto')
    .describe('What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE.'),
  codecs: z
    .array(codec)
    .min(1)
    .max(maxCodecs)
    .refine((names) => new Set(names).size === names.length, 'contains a duplicate codec')
    .nullish()
    .describe(
      'The only audio codecs, the preferred first; the relay transcodes where the other party has none of them. Null: all.',
    ),
  dtmf: z
    .enum(['auto', 'rfc4733', 'info'])
    .default('auto')
    .describe('How it takes digits: as RFC 4733 events in RTP, or as SIP INFO.'),
}

type MediaBody = z.output<z.ZodObject<typeof mediaFields>>

export interface MediaView {
  readonly media: MediaPolicy | null
  readonly media_profile: MediaColumns['media_profile']
  readonly codecs: string[] | null
  readonly dtmf: MediaColumns['dtmf']
}

export const mediaColumnsOf = ({ media, media_profile, codecs, dtmf }: MediaBody) => ({
  media: media ?? null,
  media_profile,
  dtmf,
  codecs: codecs == null ? null : JSON.stringify(codecs),
})

export const mediaViewOf = ({ media, media_profile, codecs, dtmf }: MediaColumns): MediaView => ({
  media,
  media_profile,
  dtmf,
  codecs: codecs === null ? null : [...(readNames(codecs) ?? [])],
})

/**
 * What needs a media relay where there is none. A stored value may stay: it is told of at each start, and its
 * resource can still be changed.
 */
export function withoutRelay(
  body: MediaBody,
  before: MediaView | undefined,
  hasMediaRelay: boolean,
): readonly (ErrorDetail | false)[] {
  if (hasMediaRelay) return []
  const { media, media_profile, codecs, dtmf } = mediaViewOf(mediaColumnsOf(body))
  const needs = (field: keyof MediaView, isWished: boolean, what: string): ErrorDetail | false =>
    isWished &&
    JSON.stringify(before?.[field]) !== JSON.stringify(body[field]) && {
      path: field,
      message: `${what} needs a media relay: set RTPENGINE`,
    }
  return [
    needs('media', media === 'prefer' || media === 'anchor', `media "${media}"`),
    needs('media_profile', media_profile !== 'auto', `media_profile "${media_profile}"`),
    needs('codecs', codecs !== null, 'a list of codecs'),
    needs('dtmf', dtmf !== 'auto', `dtmf "${dtmf}"`),
  ]
}
