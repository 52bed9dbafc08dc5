/**
 * The fields of carriers, sets, extensions, tenants and agents about media (SPECIFICATION.md §4.7).
 */
import { z } from 'zod'
import { codecNames, knownCodec } from '../../schema/rules/media.ts'
import type { RequestProblem } from '../http/api-error.ts'
import { names, type Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'

const maxCodecs = 16

const codec = z.string().transform((name, context) => {
  const known = knownCodec(name)
  if (known !== undefined) return known
  const message = `must be a codec: ${codecNames.join(', ')}`
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

const mediaPolicy = z.enum(['bypass', 'prefer', 'anchor'])

const profiles = ['auto', 'rtp', 'srtp', 'webrtc'] as const
const dtmfWays = ['auto', 'rfc4733', 'info'] as const

const policyWords =
  'Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only ' +
  'where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. ' +
  'The stronger of both parties counts.'

/** Every resource with media has these fields; a carrier has another `media`. */
export const mediaFields = {
  media: {
    ...field.optional({ body: mediaPolicy, view: mediaPolicy }, { about: policyWords }),
    view: mediaPolicy.nullable().describe('Null: as the tenant says, then as MEDIA_POLICY says.'),
  },
  media_profile: field.of(field.oneOf(profiles), {
    default: 'auto',
    about: 'What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE.',
  }),
  codecs: {
    ...field.optional(
      {
        body: z
          .array(codec)
          .min(1)
          .max(maxCodecs)
          .refine((given) => new Set(given).size === given.length, 'contains a duplicate codec'),
        view: z.array(z.string()),
        stored: (column) => names(column, null),
      },
      {
        about:
          'The only audio codecs, the preferred first; the relay transcodes where the other ' +
          'party has none of them. Null: all.',
      },
    ),
    view: z.array(z.string()).nullable().describe('Null: all.'),
  },
  dtmf: field.of(field.oneOf(dtmfWays), {
    default: 'auto',
    about: 'How it takes digits: as RFC 4733 events in RTP, or as SIP INFO.',
  }),
}

/** The `media` of a carrier: it does not ask the tenant. */
export const carrierMedia = field.of(
  { body: mediaPolicy, view: mediaPolicy },
  { default: 'bypass', about: policyWords },
)

/**
 * The fields that need a media relay when there is none. A stored value may stay: each start logs
 * it, and the other fields of its resource can be changed.
 */
export function withoutRelay(
  body: Row,
  before: Row | undefined,
  hasMediaRelay: boolean,
): readonly (RequestProblem | false)[] {
  if (hasMediaRelay) return []
  const { media, media_profile, codecs, dtmf } = body
  const needs = (field: string, isWished: boolean, what: string): RequestProblem | false =>
    isWished &&
    JSON.stringify(before?.[field]) !== JSON.stringify(body[field]) && {
      path: field,
      message: `${what} needs a media relay: set RTPENGINE`,
    }
  return [
    needs('media', media === 'prefer' || media === 'anchor', `media "${String(media)}"`),
    needs(
      'media_profile',
      (media_profile ?? 'auto') !== 'auto',
      `media_profile "${String(media_profile)}"`,
    ),
    needs('codecs', codecs != null, 'a list of codecs'),
    needs('dtmf', (dtmf ?? 'auto') !== 'auto', `dtmf "${String(dtmf)}"`),
  ]
}

const maxHeaders = 32

/** Headers without which there is no call. */
const neededHeaders = new Set([
  'via',
  'from',
  'to',
  'contact',
  'call-id',
  'cseq',
  'max-forwards',
  'route',
  'record-route',
  'content-type',
  'content-length',
  'content-encoding',
  'content-disposition',
  'require',
  'supported',
  'allow',
  'authorization',
  'proxy-authorization',
  'session-expires',
  'min-se',
])

const headerName = z
  .string()
  .regex(/^[\w.!%*+`'~-]{1,64}$/, 'must be the name of a header')
  .refine((name) => !neededHeaders.has(name.toLowerCase()), 'names a header that every call needs')

/** Headers that are not sent to a carrier or an agent. */
export const stripHeaders = field.of(
  {
    body: z.array(headerName).max(maxHeaders),
    view: z.array(z.string()),
    stored: (column) => names(column, []),
  },
  { default: [], about: 'Headers that are not sent to it, in any case.' },
)
