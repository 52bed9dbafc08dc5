import { expect, test } from 'vitest'
import { uuidOf, openReportRig } from '../../support/report-rig.ts'
import { startOfTime } from '../../support/control.ts'
import { execute } from '../../../schema/sql/query.ts'
import type { Trace } from '../../../schema/contracts/calls.ts'
import type { Vcon } from '../../../control/calls/vcon.ts'

const uuid = uuidOf(1)
const path = `/api/v1/calls/${uuid}/vcon`
const trace: Trace = {
  tenantId: null,
  legs: ['c1@caller'],
  peers: [],
  entries: [],
  isComplete: true,
}

test('an answered call is a dialog of both parties, with its quality, its record and its trace', async () => {
  const { request, key, store, engine } = await openReportRig()
  const heard = { mos: 4.2, mosSource: 'measured', jitterMs: 3, packetLossPct: 0 } as const
  const quality = { caller: { ...heard, roundTripMs: null, packets: 500 }, callee: null }
  await store({ quality })
  engine.trace = () => Promise.resolve(trace)
  const answer = await request(path, { token: await key() })
  expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="${uuid}.vcon.json"`)
  const vcon = answer.body as Vcon
  expect(vcon).toMatchObject({
    vcon: '0.4.0',
    uuid,
    parties: [{ tel: 'tel:15550001111' }, { tel: 'tel:18005551212' }],
    dialog: [
      {
        type: 'recording',
        start: '2026-01-01T01:00:02.000Z',
        duration: 11,
        parties: [0, 1],
        originator: 0,
      },
    ],
    analysis: [
      { type: 'report', dialog: 0, encoding: 'json', body: { caller: { mos: 4.2 }, callee: null } },
    ],
    attachments: [
      {
        purpose: 'call-record',
        party: 0,
        dialog: 0,
        body: { call_uuid: uuid, cost_exact: '0.11' },
      },
      { purpose: 'sip-trace', party: 0, dialog: 0, body: { legs: ['c1@caller'] } },
    ],
  })
  expect(vcon.dialog[0]).not.toHaveProperty('url')
})

test('a recording is named with its hash, not contained', async () => {
  const { deps, request, token, store } = await openReportRig()
  const db = deps.store
  await store()
  const row = { call_uuid: uuid, tenant_id: null, started_at: startOfTime, duration_ms: 10_400 }
  const sha256 = 'ab'.repeat(32)
  await execute(db, db.db.insertInto('recording').values({ ...row, bytes: 5, sha256 }))
  const { body } = await request(path, { token })
  expect((body as Vcon).dialog).toEqual([
    expect.objectContaining({
      duration: 10,
      mediatype: 'audio/wav',
      filename: `${uuid}.wav`,
      url: expect.stringMatching(`/api/v1/calls/${uuid}/recording$`) as string,
      content_hash: `sha256-${Buffer.from(sha256, 'hex').toString('base64url')}`,
    }),
  ])
})

test.each([
  ['BUSY', 'busy'],
  ['NO ANSWER', 'no-answer'],
  ['CANCELED', 'hung-up'],
  ['FAILED', 'failed'],
  ['CONGESTION', 'congestion'],
] as const)('a call that ended as %s is incomplete: %s', async (disposition, told) => {
  const { request, token, store } = await openReportRig()
  await store({ disposition, answeredAt: null, billsec: 0, calledNumber: 'alice' })
  const { body } = await request(path, { token })
  expect(body).toMatchObject({
    parties: [{ tel: 'tel:15550001111' }, { name: 'alice' }],
    dialog: [{ type: 'incomplete', disposition: told }],
    analysis: [],
    // Its key may not read calls.
    attachments: [{ purpose: 'call-record' }],
  })
})

test('the trace in it shows the tags of dialogs to those alone that may control calls', async () => {
  const { request, key, store, engine } = await openReportRig()
  await store()
  const message = { kind: 'message', at: startOfTime, direction: 'received' } as const
  const text = 'BYE sip:x SIP/2.0\r\nFrom: <sip:a@x>;tag=secret\r\n\r\n'
  const place = { leg: 'c1@caller', transport: 'udp', address: '10.0.0.9:5060' }
  engine.trace = () => Promise.resolve({ ...trace, entries: [{ ...message, ...place, text }] })
  const shown = async (scopes: readonly string[]): Promise<string> =>
    JSON.stringify((await request(path, { token: await key({ scopes }) })).body)
  const reading = ['cdrs:read', 'calls:read']
  expect(await shown([...reading, 'calls:control'])).toContain('tag=secret')
  expect(await shown(reading)).toContain('tag=hidden-1')
})
