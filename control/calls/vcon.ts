/**
 * A call that has ended as a vCon (draft-ietf-vcon-vcon-core, before:
 * draft-ietf-vcon-vcon-container), unsigned.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { Disposition } from '../../schema/contracts/field-values.ts'
import { requires } from '../auth/requires.ts'
import { findTrace, type TraceDeps, traceView } from './trace.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { dataOf } from '../instances/instance-client.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import { type CdrView, viewOf } from '../reports/cdr-view.ts'
import { findRecord } from '../reports/cdr-store.ts'
import { bare } from '../http/operation.ts'
import { exampleTime, moment } from '../http/view-fields.ts'
import { exampleCallUuid } from './active-call-view.ts'

const vconView = z
  .looseObject({
    vcon: z.string(),
    uuid: z.string(),
    created_at: moment,
    subject: z.string(),
    parties: z.array(z.looseObject({})),
    dialog: z.array(z.looseObject({ type: z.enum(['recording', 'incomplete']), start: moment })),
    analysis: z.array(z.looseObject({ type: z.string(), vendor: z.string() })),
    attachments: z.array(z.looseObject({ purpose: z.string(), start: moment })),
  })
  .meta({ id: 'VCon' })

const SYNTAX_VERSION = '0.4.0'
const json = { mediatype: 'application/json', encoding: 'json' } as const

/** Indices of `parties`. */
const CALLER = 0
const CALLEE = 1
/** The only dialog. */
const DIALOG = 0

export interface CallFiles {
  /** Where the recording is served. */
  readonly recordingUrl: string
  /** The trace that `GET /calls/{uuid}/trace` shows; undefined: not stored, or hidden. */
  readonly trace: object | undefined
}

export function vconOf(record: CdrView, { recordingUrl, trace }: CallFiles) {
  const attached = { start: record.start_stamp, party: CALLER, dialog: DIALOG, ...json }
  const { media_quality: quality } = record
  return {
    vcon: SYNTAX_VERSION,
    uuid: record.call_uuid,
    created_at: record.end_stamp,
    subject: `Call from ${record.caller_id_number} to ${record.destination_number}`,
    parties: [partyOf(record.caller_id_number), partyOf(record.destination_number)],
    dialog: [dialogOf(record, recordingUrl)],
    analysis:
      quality === null
        ? []
        : [
            {
              type: 'report',
              dialog: DIALOG,
              vendor: 'Tollgate',
              schema: 'MediaQuality',
              ...json,
              body: quality,
            },
          ],
    attachments: [
      { purpose: 'call-record', ...attached, body: record },
      ...(trace === undefined ? [] : [{ purpose: 'sip-trace', ...attached, body: trace }]),
    ],
  }
}

export type Vcon = ReturnType<typeof vconOf>

/** Anything may have been dialled: only a number is a tel URI. */
const partyOf = (number: string) =>
  /^\+?[\d*#]+$/.test(number) ? { tel: `tel:${number}` } : { name: number }

function dialogOf(record: CdrView, recordingUrl: string) {
  const { recording, disposition } = record
  const common = { parties: [CALLER, CALLEE], originator: CALLER }
  if (disposition !== 'ANSWERED')
    return {
      type: 'incomplete',
      start: record.start_stamp,
      duration: record.duration,
      ...common,
      disposition: incomplete[disposition],
    }
  return {
    type: 'recording',
    start: record.answer_stamp ?? record.start_stamp,
    duration: recording?.duration ?? record.billsec,
    ...common,
    ...(recording !== null && {
      mediatype: 'audio/wav',
      filename: `${record.call_uuid}.wav`,
      url: recordingUrl,
      content_hash: `sha256-${Buffer.from(recording.sha256, 'hex').toString('base64url')}`,
    }),
  }
}

const incomplete: Readonly<Record<Exclude<Disposition, 'ANSWERED'>, string>> = {
  BUSY: 'busy',
  'NO ANSWER': 'no-answer',
  CANCELED: 'hung-up',
  CONGESTION: 'congestion',
  FAILED: 'failed',
}

/** The uuid of a call that a node reported may be any text. */
const path = z.strictObject({ uuid: z.string().max(200) })

/**
 * `GET /calls/{uuid}/vcon`: everything known about an ended call, as one file for other programs.
 */
export function vconRoutes(deps: TraceDeps & WithOthers) {
  return new Hono<ControlEnv>().get(
    '/calls/:uuid/vcon',
    describeRoute({
      id: 'getVcon',
      tag: 'Calls',
      instances: 'all',
      summary:
        'Get an ended call as a vCon (draft-ietf-vcon-vcon-core): parties, dialog, media ' +
        'quality, call record and SIP trace',
      answer: bare(vconView, {
        vcon: '0.4.0',
        uuid: exampleCallUuid,
        created_at: exampleTime,
        subject: 'Call from 4930100 to 4940200',
        parties: [{ tel: 'tel:4930100' }, { tel: 'tel:4940200' }],
        dialog: [
          {
            type: 'incomplete',
            start: exampleTime,
            duration: 0,
            parties: [0, 1],
            originator: 0,
            disposition: 'busy',
          },
        ],
        analysis: [],
        attachments: [],
      }),
    }),
    requires('cdrs:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const { principal } = c.var
      const record = await findRecord(uuid, { store: deps.store, principal })
      if (record === undefined) throw notFound('call')
      const trace = principal.scopes.has('calls:read') ? await traceOf(c, uuid, deps) : undefined
      const { origin, pathname } = new URL(c.req.url)
      const vcon = vconOf(viewOf(record), {
        recordingUrl: `${origin}${pathname.replace(/\/vcon$/, '/recording')}`,
        trace,
      })
      return c.json(vcon, 200, {
        'Content-Disposition': `attachment; filename="${fileName(uuid)}.vcon.json"`,
      })
    },
  )
}

/**
 * The trace that `GET /calls/{uuid}/trace` shows, from this instance or from the one that has it.
 */
async function traceOf(
  c: Context<ControlEnv>,
  uuid: string,
  { others, ...deps }: TraceDeps & WithOthers,
): Promise<object | undefined> {
  const { principal } = c.var
  const trace = await findTrace(deps.engine, uuid, principal)
  if (trace !== undefined) return traceView(uuid, trace, principal, deps)
  const target = `/api/v1/calls/${encodeURIComponent(uuid)}/trace`
  const answer = await others?.of(c)?.first({ method: 'GET', target })
  // An instance that keeps no trace of it is none that is missing.
  return answer === undefined || answer === 'unknown' ? undefined : dataOf(answer, traceData)
}

const traceData = z.looseObject({ call_uuid: z.string() })

/** Nodes choose the uuids of calls that they report. */
const fileName = (uuid: string): string => uuid.replace(/[^\w.-]/g, '_')
