import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { CdrStore, recordingOfCall } from '../../../control/reports/cdr-store.ts'
import { CdrText, csvHeader } from '../../../control/reports/cdr-text.ts'
import { viewOf } from '../../../control/reports/cdr-view.ts'
import type { CallRecord, SentNumbers } from '../../../schema/contracts/call-record.ts'
import { first, execute } from '../../../schema/sql/query.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { answeredCall } from '../../support/report-rig.ts'
import { storeCall } from '../../support/stored-calls.ts'

const odd = '"quoted", back\\slash, new\r\nline, \u0000, \u2028, \ud800, ü€😀 and ,"startedAt":1'

/** A record with nothing that may be missing. */
const plain: CallRecord = {
  ...answeredCall,
  callUuid: 'u-1',
  callId: 'c',
  callerNumber: '1',
  calledNumber: '2',
  startedAt: startOfTime,
  answeredAt: null,
  postDialDelayMs: null,
  endedAt: startOfTime + 86_399_999,
  setId: null,
  node: null,
  carrier: null,
  attempts: [],
  currency: null,
  customerId: 7,
}

const heard = {
  mos: 3.4,
  mosSource: 'computed' as const,
  jitterMs: 12,
  packetLossPct: 9.8,
  roundTripMs: null,
  packets: 1_000,
}
const quality = { caller: heard, callee: { ...heard, mos: 4.4, mosSource: 'measured' } } as const

const attempt = (reason: string, startedAt: number, sent?: SentNumbers) => ({
  destination: `sip:${odd}`,
  status: 503,
  reason,
  ...(sent && { sent }),
  startedAt,
  endedAt: startedAt + 1_007,
})

const tariff = {
  prefix: '1',
  currency: 'EUR',
  connectFeeMicros: 20_000,
  firstIncrementSeconds: 30,
  firstRatePerMinuteMicros: 1_500_000,
  incrementSeconds: 6,
  ratePerMinuteMicros: 641_700,
  decimals: 4,
}

const recorded = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'

const records: readonly [string, Partial<CallRecord>, number][] = [
  ['with nothing that may be missing', {}, 0],
  [
    'with everything',
    {
      answeredAt: startOfTime + 1,
      postDialDelayMs: 150,
      billsec: 60,
      setId: 3,
      node: 'n',
      instance: 'sbc-1',
      carrier: 'c',
      customerId: 7,
      currency: 'EUR',
      denialCode: 'no_credit',
      tenantId: 1,
      isRecovered: true,
      isUnauthorizedByOcs: true,
      carrierCost: { costMicros: 700_001, prefix: '+44', currency: 'EUR', tenantId: null },
      dialledNumber: '0049301',
      attempts: [
        attempt('OK', startOfTime, { called: '1', caller: '' }),
        attempt('Busy', startOfTime + 999, { called: '+4930', caller: '=2' }),
      ],
    },
    641_700,
  ],
  [
    'with texts that JSON has to escape',
    {
      callerNumber: odd,
      calledNumber: odd,
      callId: odd,
      node: odd,
      carrier: odd,
      hangupCause: odd,
      denialCode: odd,
      callUuid: '","cost":0,"\\',
      dialledNumber: odd,
      attempts: [
        attempt('"sent":{"called":"1","caller":"2"}', startOfTime),
        attempt('},"endedAt":2}', startOfTime, { called: odd, caller: odd }),
        attempt(odd, startOfTime),
      ],
    },
    1,
  ],
  ['with the quality of its media', { quality }, 0],
  ['with tags of a hook', { tags: { crm: '42', odd } }, 0],
  [
    'with a verified caller',
    { verification: 'passed', verstat: 'TN-Validation-Passed', attestation: 'A' },
    0,
  ],
  ['with a recording', { callUuid: recorded }, 0],
]

/** Each is paid by customer 7. */
const names = new Map([[7, 'Acme, Ltd.']])

/** The record as it is read for a report, and its view. */
async function stored(change: Partial<CallRecord>, costMicros: number) {
  const { store, tenant } = await openControl()
  await tenant('acme')
  const currency = change.currency ?? null
  const cost = { costMicros, currency, tariff: currency === null ? null : tariff }
  await storeCall(store, { ...plain, ...change }, cost)
  const file = { call_uuid: recorded, tenant_id: 1, started_at: startOfTime, duration_ms: 1_600 }
  await execute(
    store,
    store.db.insertInto('recording').values({ ...file, bytes: 44, sha256: 'ab' }),
  )
  const cdrs = new CdrStore(store, null)
  const [row] = await cdrs.rows([1])
  const query = store.db
    .selectFrom('cdr')
    .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
    .selectAll('cdr')
    .select(['tenant.slug as tenant_slug', recordingOfCall])
    .select(sql<string>`'Acme, Ltd.'`.as('customer_name'))
  const whole = await first(store, query)
  if (row === undefined || whole === undefined) throw new Error('no record')
  return { row, text: new CdrText(await cdrs.slugs(), names), view: viewOf(whole) }
}

test.each(records)(
  'a record %s is written as its view says',
  async (_which, change, costMicros) => {
    const { row, text, view } = await stored(change, costMicros)
    const json = text.json(row)
    expect(JSON.parse(json)).toEqual(view)
    expect(Object.keys(JSON.parse(json) as object)).toEqual(Object.keys(view))
  },
)

test.each(records.slice(0, 2))(
  'a line of CSV %s has the view’s values',
  async (_which, change, micros) => {
    const { row, text, view } = await stored(change, micros)
    const names = csvHeader.trimEnd().split(',') as (keyof typeof view)[]
    expect(names.toSorted()).toEqual(Object.keys(view).toSorted())
    const cells = [...text.csv(row).matchAll(/("(?:[^"]|"")*"|[^,]*?)(?:,|\r\n)/gs)].map(
      ([, cell = '']) => (cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell),
    )
    const json = cells.splice(names.indexOf('attempts'), 1)[0] ?? ''
    expect(cells).toEqual(
      names
        .filter((name) => name !== 'attempts')
        .map((name) => String((view[name] as string | number | null) ?? ''))
        // No formula for a spreadsheet.
        .map((value) => value.replace(/^=/, "'=")),
    )
    expect(JSON.parse(json)).toEqual(view.attempts)
  },
)

test('a recording is JSON in its cell', async () => {
  const { row, text, view } = await stored({ callUuid: recorded }, 0)
  expect(view.recording).toEqual({ duration: 2, bytes: 44, sha256: 'ab' })
  expect(text.csv(row)).toContain('"{""duration"":2,""bytes"":44,""sha256"":""ab""}",,,,,,,,,,,,[]')
})

test('the quality of each direction is JSON in its cell', async () => {
  const { row, text, view } = await stored({ quality }, 0)
  const json = JSON.stringify(view.media_quality).replaceAll('"', '""')
  expect(text.csv(row)).toContain(`,3.4,12,9.8,c,`)
  expect(text.csv(row)).toContain(`,computed,"${json}",,,,,,,,,,,,,[]`)
})

test.each([
  ['plain', 'plain'],
  ['+49301234', '+49301234'],
  ['sip:a@10.0.0.1:5060;transport=udp', 'sip:a@10.0.0.1:5060;transport=udp'],
  ['=1+1', "'=1+1"],
  ['-5', '-5'],
  [' @SUM(A1)', "' @SUM(A1)"],
  ['＝1', "'＝1"],
  ['1;=1+1', "1;'=1+1"],
  ['1\n+a', `"1\n'+a"`],
  ['+cmd', "'+cmd"],
  ['-cmd', "'-cmd"],
  ['@cmd', "'@cmd"],
  ['\tcmd', "'\tcmd"],
  ['a,b', '"a,b"'],
  ['say "a"', '"say ""a"""'],
  ['Zoë', 'Zoë'],
])('a cell %j is written as %j', async (callerNumber, cell) => {
  const { row, text } = await stored({ callerNumber, calledNumber: 'called' }, 0)
  expect(text.csv(row)).toContain(`u-1,${cell},called,`)
})

test('what a node reports as the UUID of a call ends no cell, and runs nowhere', async () => {
  const { row, text } = await stored({ callUuid: '=1,2"' }, 0)
  expect(text.csv(row).startsWith(`"'=1,2""",1,2,`)).toBe(true)
})
