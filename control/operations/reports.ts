import { z } from 'zod'
import {
  directions,
  dispositions,
  hangupParties,
  mosSources,
  recordingErrors,
} from '../../schema/contracts/field-values.ts'
import type { CarrierSums } from '../reports/carrier-sums.ts'
import { summary } from '../reports/sums/summary.ts'
import type { CdrView } from '../reports/cdr-view.ts'
import { bare, data, either, type Operations, text } from '../http/openapi/operation.ts'
import { count, decimal, denialTextField, exampleTime, moment } from '../http/view-fields.ts'

const exampleUuid = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'

const attempt = z.strictObject({
  destination: z.string(),
  status: z.int(),
  reason: z.string(),
  start_stamp: moment,
  end_stamp: moment,
})

const mosSource = z
  .enum(mosSources)
  .describe(
    '`measured` by the media relay, `computed` out of jitter and loss, `reported` by a phone.',
  )

const streamQuality = z
  .strictObject({
    mos: z.number().nullable(),
    mos_source: mosSource.nullable(),
    jitter_ms: z.number().nullable(),
    packet_loss_pct: z.number().nullable(),
    round_trip_ms: z.number().nullable(),
    packets: count,
  })
  .meta({ id: 'StreamQuality' })

const mediaQuality = z
  .strictObject({ caller: streamQuality.nullable(), callee: streamQuality.nullable() })
  .describe('What was heard from each party.')
  .meta({ id: 'MediaQuality' })

const recording = z
  .strictObject({
    duration: count.describe('Seconds.'),
    bytes: count,
    sha256: z.string().describe('Of the file, in hexadecimal digits.'),
  })
  .describe('`GET /calls/{uuid}/recording` has the file. Null when there is none.')

const recordingError = z
  .enum(recordingErrors)
  .describe(
    'Why a call that was to be recorded has no recording: its media passed no relay (`not_relayed`), the relay did not do it (`relay_failed`), it has captured nothing, or no codec that can be decoded, or the file could not be written for a week. Null when it has one, was not to be recorded, or is still being written.',
  )

const callRecord: z.ZodType<CdrView> = z
  .strictObject({
    call_uuid: z.string(),
    caller_id_number: z.string(),
    destination_number: z.string(),
    start_stamp: moment,
    billsec: count,
    disposition: z.enum(dispositions),
    mos_score: z
      .number()
      .nullable()
      .describe('1 to 4.5, of the worse direction. Null when nothing is known.'),
    cost: z.number(),
    cost_exact: decimal,
    currency: z.string().nullable(),
    answer_stamp: moment.nullable(),
    end_stamp: moment,
    duration: count,
    post_dial_delay_ms: count.nullable(),
    sip_code: z.int(),
    hangup_cause: z.string(),
    hangup_by: z.enum(hangupParties),
    denial_code: z.string().nullable(),
    direction: z.enum(directions),
    set_id: z.int().nullable(),
    node: z.string().nullable(),
    instance: z
      .string()
      .nullable()
      .describe(
        'Node of this platform that had the call. Null when an earlier version recorded it, or another system reported it.',
      ),
    carrier: z.string().nullable(),
    attempts: z.array(attempt),
    jitter_ms: z.number().nullable(),
    packet_loss_pct: z.number().nullable(),
    customer_id: z.int().nullable(),
    tenant_slug: z.string().nullable(),
    call_id: z.string(),
    recovered: z.boolean(),
    unauthorized_by_ocs: z.boolean(),
    mos_source: mosSource.nullable(),
    media_quality: mediaQuality.nullable(),
    recording: recording.nullable(),
    recording_error: recordingError.nullable(),
    denial_text: denialTextField,
  })
  .meta({ id: 'CallRecord' })

const report = z
  .strictObject({
    total_calls: count.describe('Calls that match the filter, on all pages.'),
    total_billsec: count,
    total_refused: z
      .strictObject({ unknown_source: count, overload: count })
      .optional()
      .describe(
        'Calls of the period that were refused without a record. Absent when there are none, when a filter is set, and for tenant credentials.',
      ),
    records: z.array(callRecord),
    truncated: z
      .literal(true)
      .optional()
      .describe('True when the list was cut at 10,000 records because `page` was absent.'),
    meta: z.strictObject({ page: z.int(), limit: z.int(), total: count }).optional(),
  })
  .meta({ id: 'CallReport' })

const exampleRecord = {
  call_uuid: exampleUuid,
  caller_id_number: '4930100',
  destination_number: '4940200',
  start_stamp: exampleTime,
  billsec: 20,
  disposition: 'ANSWERED',
  mos_score: null,
  cost: 0.6,
  cost_exact: '0.60',
  currency: 'USD',
  answer_stamp: exampleTime,
  end_stamp: '2026-01-01T00:00:20.000Z',
  duration: 20,
  post_dial_delay_ms: 180,
  sip_code: 200,
  hangup_cause: 'NORMAL_CLEARING',
  hangup_by: 'caller',
  denial_code: null,
  direction: 'inbound',
  set_id: 1,
  node: 'sip:10.0.0.11:5060;transport=udp',
  instance: 'sbc-1',
  carrier: null,
  attempts: [],
  jitter_ms: null,
  packet_loss_pct: null,
  customer_id: 7,
  tenant_slug: null,
  call_id: 'a84b4c76e66710',
  recovered: false,
  unauthorized_by_ocs: false,
  mos_source: null,
  media_quality: null,
  recording: null,
  recording_error: null,
  denial_text: null,
}

const directionSums = z
  .strictObject({
    calls: count,
    answered: count,
    billsec: count,
    asr_percent: z.number().nullable().describe('Answered of all. Null without a call.'),
    acd_seconds: z.number().nullable().describe('The mean call. Null without an answered one.'),
  })
  .meta({ id: 'DirectionSums' })

const carrierSums: z.ZodType<CarrierSums> = z
  .strictObject({ carrier: z.string(), outbound: directionSums, inbound: directionSums })
  .describe('A call counts at the carrier that took it, or that was tried last.')
  .meta({ id: 'CarrierSums' })

const exampleFigures = {
  calls: 20,
  answered: 12,
  denied: 2,
  failed: 1,
  asr_percent: 60,
  billsec: 900,
  cost: { USD: '16.50' },
  mean_pdd_ms: 180,
  first_call: exampleTime,
  last_call: exampleTime,
}

export const reportOperations: Operations = {
  'GET /api/v1/reports/calls': {
    id: 'summarizeCalls',
    tag: 'Calls',
    summary:
      'Count the calls of a period of 100 days at most by customer, tenant, caller, first digits of the called number, node, carrier, denial code or minute',
    answer: data(summary.meta({ id: 'CallSummary' }), {
      start: exampleTime,
      end: '2026-01-02T00:00:00.000Z',
      complete: true,
      source: 'sums',
      totals: { groups: 1, ...exampleFigures },
      other_calls: 0,
      groups: [{ group: '7', name: 'Acme', ...exampleFigures, call_uuids: [exampleUuid] }],
    }),
    refusals: [503],
  },
  'GET /api/v1/reports/carriers': {
    id: 'listCarrierSums',
    tag: 'Calls',
    summary: 'Get calls, answer-seizure ratio and mean length by carrier, of 31 days at most',
    answer: data(z.array(carrierSums), [
      {
        carrier: 'telco',
        outbound: { calls: 20, answered: 12, billsec: 900, asr_percent: 60, acd_seconds: 75 },
        inbound: { calls: 0, answered: 0, billsec: 0, asr_percent: null, acd_seconds: null },
      },
    ]),
    refusals: [503],
  },
  'GET /api/v1/reports/cdrs': {
    id: 'listCallRecords',
    tag: 'Calls',
    summary: 'List the call records of a period. CSV and NDJSON have no length limit.',
    answer: either(
      bare(report, { total_calls: 1, total_billsec: 20, records: [exampleRecord] }),
      text('text/csv', 'call_uuid,caller_id_number\r\n'),
      text('application/x-ndjson', '{"call_uuid":"0b4c1c1e"}\n'),
    ),
    refusals: [503],
  },
}
